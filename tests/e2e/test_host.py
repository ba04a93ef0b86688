#!/usr/bin/env -S python3 -B
"""Workers of one host: what one that dies held is had by another at once, and one of them
runs timers.

    test_host.py [postgres|valkey]

Each case has a file of its own, or a namespace of its own on the server that
BELAY_TEST_POSTGRES or BELAY_TEST_VALKEY names, and a directory of its own for shared
memory.
"""

import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import tap
from tap import answer, belay, case, same

PATIENCE = 40  # seconds until a condition that must come true has not
SOON = 3       # seconds in which it is had at once, on a busy machine
QUIET = 1.5    # seconds in which something that must not happen would have
ON_SERVER = len(sys.argv) > 1
_n = 0


class Host:
    """A store that nobody has used yet, and where its processes meet."""

    def __init__(self):
        global _n
        _n += 1
        self.path = pathlib.Path(f"host{_n}.db").absolute()
        self.at = ("--store", f"sqlite:{self.path}")
        if ON_SERVER:
            url = os.environ[f"BELAY_TEST_{sys.argv[1].upper()}"]
            self.at = ("--store", url, "--namespace", f"host-{os.getpid()}-{_n}")
        self.shm = tempfile.TemporaryDirectory(prefix="bh", dir="/dev/shm")
        self.env = {"BELAY_FLEET_DIR": self.shm.name}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shm.cleanup()

    def ask(self, *words):
        return json.loads(answer(*self.at, "--json", *words, env=self.env))

    def submit(self, *words):
        return self.ask("submit", "--lane", "l", *words)["id"]

    def state(self, execution):
        return self.ask("show", execution)["state"]

    def events(self, kind):
        return [e for e in self.ask("events")["items"] if e["type"] == kind]

    def fleet(self):
        """The one fleet there is."""
        names = [f["name"] for f in self.ask("fleet", "status")["fleets"]]
        same(len(names), 1)
        return names[0]

    def members(self):
        with contextlib.suppress(AssertionError):
            found = self.ask("fleet", "status", self.fleet())["members"]
            return [m for m in found if m["life"] == "alive"]
        return []

    def timers(self):
        """The pid of the process that runs timers; None."""
        found = self.ask("fleet", "contest", "ls", "--fleet", self.fleet())["items"]
        nodes = [c["node"] for c in found if c["subject"] == "timers"]
        pids = [m["pid"] for m in self.members() if m["node"] in nodes]
        return pids[0] if pids else None


class Worker:
    """`belay work` beside the test; ends with it."""

    def __init__(self, host, script, lease="1h", env=None, before=()):
        self.runtime = tempfile.TemporaryDirectory(prefix="bw")
        self.process = subprocess.Popen(
            [*before, tap.BELAY, *host.at, "--json", "work", "--lane", "l",
             "--lease", lease, "--exec", script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"XDG_RUNTIME_DIR": self.runtime.name} | host.env | (env or {}))
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.communicate()
        self.runtime.cleanup()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        same(self.process.wait(PATIENCE), 0)


def until(condition, what, within=PATIENCE):
    """The first true answer of the condition."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: did not come true within {within} seconds")


def never(condition, what):
    end = time.monotonic() + QUIET
    while time.monotonic() < end:
        assert not condition(), what
        time.sleep(0.05)


def ticks(pid):
    """Processor time that a process has used, in hundredths of a second."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


STAYS = "sleep 1000"
ENDS = "true"


def held_by(host, execution, worker):
    """Until the worker runs it."""
    until(lambda: host.state(execution) == "active", "the job runs")
    until(lambda: len(host.members()) >= 1, "its worker is in the fleet")
    assert worker.process.poll() is None


@case("what a worker held that was killed is had by another at once")
def killed():
    with Host() as host, Worker(host, STAYS) as first:
        job = host.submit()
        held_by(host, job, first)
        with Worker(host, ENDS) as second:
            until(lambda: len(host.members()) == 2, "both are there")
            first.kill()
            until(lambda: host.state(job) == "completed", "the other ran it", SOON)
            second.end()
        lost, = host.events("expired")
        same(lost["reason"], "holder_dead")
        same([e["fence"] for e in host.events("reclaimed")], [2])
        shown = host.ask("show", job)
        same((shown["attempts"], shown["reclaims"]), (2, 1))
        same(os.listdir(host.shm.name), [])  # the last one leaves nothing behind


@case("a worker that is stopped is alive, and keeps what it has")
def stopped():
    with Host() as host, Worker(host, "sleep 2") as first:
        job = host.submit()
        held_by(host, job, first)
        with Worker(host, ENDS):
            until(lambda: len(host.members()) == 2, "both are there")
            first.process.send_signal(signal.SIGSTOP)
            never(lambda: host.events("expired"), "it was taken from a living one")
            first.process.send_signal(signal.SIGCONT)
            until(lambda: host.state(job) == "completed", "it went on")
        same(host.ask("show", job)["attempts"], 1)


@case("a claim that was printed is its reader's, and does not end with its process")
def printed():
    with Host() as host, Worker(host, ENDS):
        until(lambda: len(host.members()) == 1, "the worker is there")
        job = host.ask("submit", "--lane", "other")["id"]
        claimed = host.ask("claim", "--lane", "other", "--worker", "me", "--lease", "1h")
        handle = claimed["claims"][0]["handle"]
        # somebody dies, so that everybody looks
        with Worker(host, ENDS) as other:
            until(lambda: len(host.members()) == 2, "both are there")
            other.kill()
        never(lambda: host.state(job) != "active", "it was taken")
        host.ask("complete", "--handle", handle)
        same(host.state(job), "completed")


@case("without shared memory it is had when the lease ends, and doctor says so")
def alone():
    nowhere = {"BELAY_FLEET_DIR": "/nonexistent/anywhere"}
    with Host() as host, Worker(host, STAYS, env=nowhere) as first:
        host.env = nowhere
        job = host.submit()
        until(lambda: host.state(job) == "active", "the job runs")
        with Worker(host, ENDS):
            time.sleep(0.5)
            first.kill()
            never(lambda: host.state(job) != "active", "it was taken early")
        same(host.events("expired"), [])
    with Host() as host, Worker(host, STAYS, "1s", env=nowhere) as first:
        host.env = nowhere
        job = host.submit()
        until(lambda: host.state(job) == "active", "the job runs")
        with Worker(host, ENDS):
            first.kill()
            until(lambda: host.state(job) == "completed", "its lease has ended")
        same([e["reason"] for e in host.events("expired")], [None])
        told = belay(*host.at, "--json", "doctor", env=nowhere)
        found, = [f for f in json.loads(told.stdout)["findings"] if f["what"] == "host"]
        same(found["level"], "warn")
        assert "no shared memory" in found["message"], found


@case("one where shared memory is and one where it is not")
def mixed():
    with Host() as host, Worker(host, STAYS, "1s",
                                env={"BELAY_FLEET_DIR": "/nonexistent"}) as first:
        job = host.submit()
        until(lambda: host.state(job) == "active", "the job runs")
        with Worker(host, ENDS):
            first.kill()
            until(lambda: host.state(job) == "completed", "its lease has ended")
        same([e["reason"] for e in host.events("expired")], [None])


@case("those who died while nobody watched are found by who comes next")
def unwatched():
    with Host() as host, Worker(host, STAYS) as first:
        job = host.submit()
        held_by(host, job, first)
        first.kill()
        with Worker(host, ENDS):
            until(lambda: host.state(job) == "completed", "who came ran it", SOON)
        same([e["reason"] for e in host.events("expired")], ["holder_dead"])


def drained(host, script=ENDS, env=None):
    """What a worker counts that ends when nothing is left for it."""
    ran = belay(*host.at, "--json", "work", "--lane", "l", "--lease", "1h", "--drain",
                "--exec", script, env=host.env | (env or {}))
    same(ran.returncode, 0)
    return json.loads(ran.stdout)["completed"]


@case("--drain: what the dead held is left, and is done before it ends")
def drained_after():
    for _ in range(3):
        with Host() as host, Worker(host, STAYS) as first:
            job = host.submit()
            held_by(host, job, first)
            first.kill()
            same(drained(host), 1)
            same(host.state(job), "completed")
            same([e["reason"] for e in host.events("expired")], ["holder_dead"])
            same(os.listdir(host.shm.name), [])


@case("--drain: who dies while it works is seen to, too")
def drained_beside():
    with Host() as host, Worker(host, STAYS) as first:
        job = host.submit()
        held_by(host, job, first)
        mine = host.submit()
        # its own job ends with the last thread of the other worker, and it looks at once
        kills = (f"cd /proc/{first.pid}; kill -KILL {first.pid}; "
                 "until grep -q '^State:.Z' status && [ $(ls task | wc -l) = 1 ]; do :; done")
        same(drained(host, kills), 2)
        same([host.state(j) for j in (job, mine)], ["completed"] * 2)


@case("--drain: what the living hold keeps nobody")
def drained_alive():
    with Host() as host, Worker(host, STAYS) as first:
        job = host.submit()
        held_by(host, job, first)
        same(drained(host), 0)
        mine = host.submit()
        same(drained(host), 1)
        same([host.state(j) for j in (job, mine)], ["active", "completed"])
        # and without shared memory nobody is known to be dead
        first.kill()
        same(drained(host, env={"BELAY_FLEET_DIR": "/nonexistent/anywhere"}), 0)
        same(host.state(job), "active")
        same(drained(host), 1)


@case("a claim that does not wait asks for the dead before it says that nothing is there")
def claimed_after():
    with Host() as host, Worker(host, STAYS) as first:
        job = host.submit()
        held_by(host, job, first)
        claim = ("claim", "--lane", "l", "--worker", "me")
        same(host.ask(*claim)["claims"], [])
        first.kill()
        same([c["execution"] for c in host.ask(*claim)["claims"]], [job])


@case("a lease of another boot or another host is left alone")
def elsewhere():
    if ON_SERVER:
        return  # the row is changed below the library
    for column in ("lease_boot", "lease_host"):
        with Host() as host, Worker(host, STAYS) as first:
            job = host.submit()
            held_by(host, job, first)
            with sqlite3.connect(host.path) as db:
                was, = db.execute(f"SELECT {column} FROM belay_execution").fetchone()
                db.execute(f"UPDATE belay_execution SET {column} = 'another'")
            db.close()
            assert was is not None
            with Worker(host, ENDS):
                until(lambda: len(host.members()) == 2, "both are there")
                first.kill()
                never(lambda: host.state(job) != "active", "it was taken")
            with sqlite3.connect(host.path) as db:
                db.execute(f"UPDATE belay_execution SET {column} = ?", (was,))
            db.close()
            with Worker(host, ENDS):
                until(lambda: host.state(job) == "completed", "it is of here again", SOON)


def apart():
    """The words before a command that give it a pid namespace of its own; None: nobody may."""
    space = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    for words in (space, (*space, "--user", "--map-root-user")):
        with contextlib.suppress(FileNotFoundError):
            if subprocess.run([*words, "true"], check=False, stderr=subprocess.DEVNULL,
                              timeout=PATIENCE).returncode == 0:
                return words
    return None


class Apart(Worker):
    """A worker in a pid namespace of its own, where it is the first process."""

    def __init__(self, host, script, lease="1h", env=None):
        super().__init__(host, script, lease, env, before=apart())
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children")
        self.inner = int(until(children.read_text, "it has begun").split()[0])

    def kill(self):
        os.kill(self.inner, signal.SIGKILL)
        self.process.wait()


def by_its_time(worker=Worker, where="/nonexistent/anywhere"):
    """What is left where nobody can tell who is dead: the end of the lease."""
    with Host() as host, worker(host, STAYS, "1s", env={"BELAY_FLEET_DIR": where}) as first:
        job = host.submit()
        until(lambda: host.state(job) == "active", "the job runs")
        with Worker(host, ENDS):
            first.kill()
            until(lambda: host.state(job) == "completed", "its lease has ended")
        same([e["reason"] for e in host.events("expired")], [None])


@case("pid namespaces: who lives is not taken for dead, who is killed is found by its lock")
def namespaces():
    if not apart():
        by_its_time()
        return
    # The first is pid 1 where it lives; elsewhere that is another process, of another age.
    for second in (Worker, Apart):
        with Host() as host, Apart(host, STAYS) as first:
            job = host.submit()
            held_by(host, job, first)
            with second(host, ENDS):
                until(lambda: len(host.members()) == 2, "both are there")
                never(lambda: host.events("expired"), "it was taken from a living one")
                first.kill()
                until(lambda: host.state(job) == "completed", "the other ran it", SOON)
            same([e["reason"] for e in host.events("expired")], ["holder_dead"])


@case("pid namespaces: who died while nobody watched is found, too")
def namespaces_unwatched():
    if not apart():
        by_its_time()
        return
    for _ in range(5):
        with Host() as host, Apart(host, STAYS) as first:
            job = host.submit()
            held_by(host, job, first)
            until(host.timers, "it runs timers, which the next one takes over")
            first.kill()
            same(drained(host), 1)
            same([e["reason"] for e in host.events("expired")], ["holder_dead"])


@case("pid namespaces: of who shares no memory nothing is believed")
def namespaces_apart():
    if not apart():
        by_its_time()
        return
    with Host() as host, tempfile.TemporaryDirectory(prefix="bh", dir="/dev/shm") as other:
        with Apart(host, STAYS, env={"BELAY_FLEET_DIR": other}) as first:
            job = host.submit()
            until(lambda: host.state(job) == "active", "the job runs")
            with Worker(host, ENDS):
                never(lambda: host.state(job) != "active", "it was taken from a living one")
                first.kill()
                never(lambda: host.state(job) != "active", "it was taken without a proof")
            same(host.events("expired"), [])
        by_its_time(Apart, other)


@case("one worker runs timers, and another when that is killed, or ends")
def elected():
    with Host() as host, contextlib.ExitStack() as stack:
        workers = {}
        for _ in range(3):
            worker = stack.enter_context(Worker(host, ENDS))
            workers[worker.pid] = worker
        until(lambda: len(host.members()) == 3, "all are there")
        first = until(host.timers, "somebody runs timers", SOON)
        for end in (Worker.kill, Worker.end):
            end(workers.pop(first))
            second = until(lambda: host.timers() if host.timers() != first else None,
                           "another takes its place", SOON)
            assert second in workers, (second, list(workers))
            first = second
        job = host.submit("--delay", "300ms")
        until(lambda: host.state(job) == "completed", "timers run")


@case("timers of a whole store: one process, then the next")
def served():
    with Host() as host, contextlib.ExitStack() as stack:
        at = (*host.at[:2], "timers", *(("--only-namespace", host.at[3]) if ON_SERVER else ()))
        servers = {}
        for _ in range(2):
            process = stack.enter_context(subprocess.Popen(
                [tap.BELAY, *at], env=os.environ | host.env,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
            stack.callback(process.kill)
            servers[process.pid] = process
        until(lambda: len(host.members()) == 2, "both are there")

        def holder():
            found = host.ask("fleet", "contest", "ls", "--fleet", host.fleet())["items"]
            nodes = [c["node"] for c in found if c["subject"].startswith("timers")]
            pids = [m["pid"] for m in host.members() if m["node"] in nodes]
            return pids[0] if pids else None
        first = until(holder, "somebody runs timers", SOON)
        servers[first].kill()
        servers[first].wait()
        second = until(lambda: holder() not in (None, first) and holder(),
                       "the other takes its place", SOON)
        # and sleeps, whoever is dead
        before = ticks(second)
        time.sleep(1)
        assert ticks(second) - before < 20, (before, ticks(second))


tap.main()
