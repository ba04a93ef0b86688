#!/usr/bin/env -S python3 -B
"""`belay work` with real processes: what jobs get, how they end, and what survives.

    test_work.py [postgres|valkey]

Each case has a file of its own, or a namespace of its own on the server that
BELAY_TEST_POSTGRES or BELAY_TEST_VALKEY names.
"""

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import select
import shlex
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time

import tap
from tap import answer, belay, case, same

PATIENCE = 40  # seconds until a condition that must come true has not
_n = 0


def store():
    """Options of a store that nobody has used yet."""
    global _n
    _n += 1
    if len(sys.argv) > 1:
        url = os.environ[f"BELAY_TEST_{sys.argv[1].upper()}"]
        return ("--store", url, "--namespace", f"work-{os.getpid()}-{_n}")
    return ("--store", f"sqlite:{pathlib.Path(f'work{_n}.db').absolute()}")


def ask(at, *words, **options):
    # the command's own words come last: nothing behind -- is an option
    return json.loads(answer(*at, "--json", *words, **options))


def submit(at, *words, lane="l", argv=()):
    return ask(at, "submit", "--lane", lane, *words, *(("--", *argv) if argv else ()))["id"]


def shell(at, script, *words, **options):
    return submit(at, *words, argv=("sh", "-c", script), **options)


def show(at, execution):
    return ask(at, "show", execution)


def attempts(at, execution):
    return ask(at, "attempts", execution)["items"]


def frames(at, execution, attempt=0):
    """All frames of an attempt, with their bytes."""
    found, cursor = [], None
    while True:
        page = ask(at, "logs", execution, "--attempt", str(attempt), "--limit", "1000",
                   *(("--after", cursor) if cursor else ()))
        for item in page["items"]:
            text, encoded = item.get("data"), item.get("data_base64")
            item["bytes"] = text.encode() if encoded is None else base64.b64decode(encoded)
            found.append(item)
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def stream(at, execution, kind, attempt=0):
    return b"".join(f["bytes"] for f in frames(at, execution, attempt) if f["kind"] == kind)


def digest(at, execution):
    """Everything about an execution that a worker could have written."""
    tries = attempts(at, execution)
    return json.dumps([show(at, execution), tries,
                       [[f["seq"], f["kind"], f["bytes"].hex()]
                        for t in tries for f in frames(at, execution, t["attempt"])]],
                      sort_keys=True)


def until(condition, what="it"):
    """The first true answer of the condition; fails when there is none for too long."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: did not come true within {PATIENCE} seconds")


def is_alive(pid):
    """Whether the process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def children(pid):
    """State and pid of every child."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append((fields[0], int(entry.name)))
    return found


class Worker:
    """`belay work` beside the test; ends with it."""

    def __init__(self, at, *words, lane="l", env=None):
        # short: names of sockets have little room
        self.log = ""
        self.runtime = tempfile.TemporaryDirectory(prefix="bw")
        self.process = subprocess.Popen(
            [tap.BELAY, *at, "--json", "work", "--lane", lane, *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"XDG_RUNTIME_DIR": self.runtime.name} | (env or {}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
        self.process.communicate()
        self.runtime.cleanup()

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def logs(self, pattern):
        """Waits for a line of its log."""
        fd, end = self.process.stderr.fileno(), time.monotonic() + PATIENCE
        while not re.search(pattern, self.log):
            left = end - time.monotonic()
            assert left > 0 and select.select([fd], [], [], left)[0], (pattern, self.log)
            self.log += os.read(fd, 65536).decode()

    def left(self):
        """What lies in its runtime directory."""
        return [str(p) for p in pathlib.Path(self.runtime.name).rglob("*")]

    def sockets(self):
        return [p for p in pathlib.Path(self.runtime.name).rglob("*") if p.is_socket()]

    def result(self, status=0):
        """Its answer, once it has ended; nothing is left of it then."""
        out, log = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == status, (self.process.returncode, log.decode())
        same(self.left(), [])
        return json.loads(out) if status == 0 else json.loads(log.splitlines()[-1])


def work(at, *words, **options):
    """A worker that runs to its end by itself."""
    with Worker(at, *words, **options) as worker:
        return worker.result()


def drain(at, *words, **options):
    return work(at, "--drain", *words, **options)


def counts(jobs=0, completed=0, failed=0, released=0, lost=0):
    return {"jobs": jobs, "completed": completed, "failed": failed, "released": released,
            "lost": lost}


def scratch(name):
    """A path that nothing has yet."""
    global _n
    _n += 1
    return str(pathlib.Path(f"{name}{_n}").absolute())


def read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def pid_in(path):
    """The number that a job writes there, with its newline."""
    return int(until(lambda: read(path).endswith("\n") and read(path), path))


def run_until_told(at, beat, *words):
    """A job that writes its pid to `beat`, prints, and runs until it is killed."""
    return shell(at, f"echo $$ > {beat}; while :; do echo beat; sleep 0.05; done", *words)


PYTHON = shlex.quote(sys.executable)


# --- what a job gets and what becomes of it ---


@case("exit statuses and signals decide how an attempt ends")
def _():
    at = store()
    ways = [("exit 0", "completed", None, None),
            ("echo why >&2; exit 75", "failed", "transient", "exit status 75"),
            ("echo why >&2; exit 100", "failed", "permanent", "exit status 100"),
            ("echo why >&2; exit 3", "failed", "transient", "exit status 3"),
            ("echo why >&2; kill -KILL $$", "failed", "infra_crash",
             "killed by signal 9 (Killed)")]
    ids = [shell(at, script) for script, *_ in ways]
    same(drain(at, "--concurrency", "2"), counts(5, completed=1, failed=4))
    for execution, (_, state, kind, message) in zip(ids, ways):
        found = show(at, execution)
        same(found["state"], state)
        if kind:
            failure = found["failure"]
            same((failure["class"], failure["message"]), (kind, message))
            same(failure["detail"], "why\n")
    same(ask(at, "result", ids[0])["result"], {"exit": 0})
    same(ask(at, "check")["findings"], [])


@case("what fails for now is tried again, what fails for good is not")
def _():
    at = store()
    mark = scratch("tried")
    flaky = shell(at, f"echo try; test -e {mark} && exit 0; touch {mark}; exit 75",
                  "--retries", "3", "--backoff", "fixed:10ms")
    final = shell(at, "exit 100", "--retries", "3", "--backoff", "fixed:10ms")
    with Worker(at) as worker:
        until(lambda: show(at, flaky)["state"] == "completed")
        until(lambda: show(at, final)["state"] == "failed")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(3, completed=1, failed=2))
    same([(a["type"], a["end"]) for a in attempts(at, flaky)],
         [("initial", "ended_failure"), ("retry", "ended_success")])
    same((len(attempts(at, final)), show(at, flaky)["retries"]), (1, 1))


@case("without --exec the payload's argv is run, and what has none fails for good")
def _():
    at = store()
    ran = submit(at, argv=("printf", "%s|", "a b", "$HOME", "", "ü"))
    bad = [submit(at), submit(at, "--payload", "[1]"), submit(at, "--payload", '{"argv":[]}'),
           submit(at, "--payload", '{"argv":["sh",1]}')]
    missing = submit(at, argv=("no-such-command-of-anybody",))
    same(drain(at), counts(6, completed=1, failed=5))
    same(stream(at, ran, "stdout"), "a b|$HOME||ü|".encode())
    for execution in bad:
        failure = show(at, execution)["failure"]
        same(failure["class"], "permanent")
        assert "argv" in failure["message"], failure
    failure = show(at, missing)["failure"]
    same(failure["class"], "permanent")
    same(failure["message"], "the command cannot be run: No such file or directory")


@case("a job has the payload on its standard input, and its printing as the result")
def _():
    at = store()
    plain = submit(at, "--payload", '{"b": [1, 2.50], "a": "ü"}')
    same(drain(at, "--exec", "cat", "--result", "stdout"), counts(1, completed=1))
    same(ask(at, "result", plain)["result"], {"a": "ü", "b": [1, 2.5]})

    text = submit(at, "--payload", "1")
    same(drain(at, "--exec", "cat > /dev/null; printf 'no json\\n'", "--result", "stdout"),
         counts(1, completed=1))
    found = ask(at, "result", text)
    assert "no json" in json.dumps(found) or \
        base64.b64decode(found["result_base64"]) == b"no json\n", found
    same(stream(at, text, "stdout"), b"no json\n")

    nothing = submit(at)
    same(drain(at, "--exec", "cat", "--result", "stdout"), counts(1, completed=1))
    same(stream(at, nothing, "stdout"), b"")


@case("a payload of 1 MiB reaches a job that reads it, and does not stop one that does not")
def _():
    at = store()
    big = json.dumps("x" * ((1 << 20) - 2))
    path = pathlib.Path(scratch("payload"))
    path.write_text(big, encoding="utf-8")
    readers = [submit(at, "--payload", f"@{path}", lane=lane) for lane in ("read", "leave")]
    same(drain(at, "--exec", "sha256sum", lane="read"), counts(1, completed=1))
    same(stream(at, readers[0], "stdout").split()[0].decode(),
         hashlib.sha256(big.encode()).hexdigest())
    same(drain(at, "--exec", "echo done", lane="leave"), counts(1, completed=1))
    same(stream(at, readers[1], "stdout"), b"done\n")


@case("megabytes on both outputs at once are stored to the last byte and in their order")
def _():
    at = store()
    script = scratch("loud.py")
    pathlib.Path(script).write_text("""import os, random, sys
r = random.Random(7)
for fd in (1, 2) * 2500:
    data = memoryview(r.randbytes(r.randrange(500, 3500)))
    while data:
        data = data[os.write(fd, data):]
""", encoding="utf-8")
    plain = subprocess.run([sys.executable, script], check=True, capture_output=True)
    assert len(plain.stdout) > 4e6 and len(plain.stderr) > 4e6
    loud = shell(at, f"exec {PYTHON} {script}")
    same(drain(at), counts(1, completed=1))
    found = frames(at, loud)
    for kind, want in (("stdout", plain.stdout), ("stderr", plain.stderr)):
        got = b"".join(f["bytes"] for f in found if f["kind"] == kind)
        same((len(got), hashlib.sha256(got).hexdigest()),
             (len(want), hashlib.sha256(want).hexdigest()))
    same([f["seq"] for f in found], list(range(1, len(found) + 1)))
    assert max(len(f["bytes"]) for f in found) <= 65536


@case("what a job prints can be read while it runs")
def _():
    at = store()
    go = scratch("go")
    execution = shell(at, f"echo first; until test -e {go}; do sleep 0.02; done; echo last")
    with Worker(at) as worker:
        until(lambda: show(at, execution)["state"] == "active"
              and stream(at, execution, "stdout") == b"first\n", "the first line")
        pathlib.Path(go).touch()
        until(lambda: show(at, execution)["state"] == "completed")
        same(stream(at, execution, "stdout"), b"first\nlast\n")
        worker.signal(signal.SIGTERM)
        worker.result()


@case("a child that keeps the outputs open does not keep the job from ending")
def _():
    at = store()
    path = scratch("left")
    execution = shell(at, f"sleep 600 & echo $! > {path}; echo done")
    began = time.monotonic()
    same(drain(at), counts(1, completed=1))
    assert time.monotonic() - began < 30
    same(stream(at, execution, "stdout"), b"done\n")
    os.kill(pid_in(path), signal.SIGKILL)


@case("a job's environment has its attempt, and nothing of the store")
def _():
    at = store()
    execution = submit(at, "--kind", "k")
    secret = {"BELAY_STORE": at[1], "BELAY_TOKEN": "secret", "BELAY_TOKEN_FILE": "f",
              "OF_THE_USER": "kept"}
    ran = drain(at, "--exec", "env -0; ls -l /proc/self/fd/ >&2", env=secret)
    same(ran, counts(1, completed=1))
    found = dict(line.split("=", 1) for line in
                 stream(at, execution, "stdout").decode().split("\0") if line)
    own = {k: v for k, v in found.items() if k.startswith("BELAY_")}
    same(sorted(own), ["BELAY_ATTEMPT", "BELAY_EXECUTION", "BELAY_FENCE", "BELAY_HANDLE",
                       "BELAY_KIND", "BELAY_LANE", "BELAY_NAMESPACE", "BELAY_SOCKET"])
    same((own["BELAY_EXECUTION"], own["BELAY_ATTEMPT"], own["BELAY_LANE"], own["BELAY_KIND"]),
         (execution, "0", "l", "k"))
    same(own["BELAY_FENCE"], str(show(at, execution)["fence"]))
    same(found["OF_THE_USER"], "kept")
    assert not any(at[1] in value for value in found.values()), found
    # standard streams, and the directory that ls itself reads
    listed = [line.split("->")[0].split()[-1] for line in
              stream(at, execution, "stderr").decode().splitlines() if "->" in line]
    same(sorted(listed), ["0", "1", "2", "3"])


@case("a job has the trace context of who submitted it, and not that of the worker")
def _():
    at = store()
    ids = [submit(at, "--trace-parent", "00-1-2-01", "--trace-state", "a=b"),
           submit(at, "--trace-parent", "00-1-2-01"), submit(at)]
    own = {"TRACEPARENT": "of the worker", "TRACESTATE": "of the worker",
           "TRACEPARENTS": "another"}
    ran = drain(at, "--exec", "env | grep ^TRACE | sort", env=own)
    same(ran, counts(3, completed=3))
    same([stream(at, execution, "stdout").decode().split("\n")[:-1] for execution in ids],
         [["TRACEPARENT=00-1-2-01", "TRACEPARENTS=another", "TRACESTATE=a=b"],
          ["TRACEPARENT=00-1-2-01", "TRACEPARENTS=another"],
          ["TRACEPARENTS=another"]])


@case("jobs run side by side, as many as --concurrency says")
def _():
    at = store()
    place = pathlib.Path(scratch("meet"))
    place.mkdir()
    script = f"touch {place}/$BELAY_EXECUTION; until test $(ls {place} | wc -l) -ge 4; " \
             "do sleep 0.02; done"
    for _ in range(4):
        shell(at, script)
    same(drain(at, "--concurrency", "4"), counts(4, completed=4))


def without_descriptors(worker, but=0):
    """Lets the worker open so few more; returns the limits that were."""
    most = max(int(fd) for fd in os.listdir(f"/proc/{worker.pid}/fd"))
    most_ever = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (most + 1 + but, most_ever))


@case("a worker short of descriptors gives back what it cannot start, and starts it later")
def _():
    at = store()
    if not at[1].startswith("sqlite:"):
        return  # others open connections when they need them
    go = scratch("go")
    running = shell(at, f"until test -e {go}; do sleep 0.02; done")
    with Worker(at, "--concurrency", "8", "--max", "5") as worker:
        worker.logs("event=job_started")
        before = without_descriptors(worker)
        waiting = [shell(at, "echo run") for _ in range(4)]
        for _ in range(3):
            worker.logs(r'level=warn event=job_not_started .*message=".*Too many open files')
            worker.log = ""
        for execution in waiting:
            found = show(at, execution)
            same((found["failure"], found["retries"], found["reclaims"]), (None, 0, 0))
        pathlib.Path(go).touch()
        until(lambda: show(at, running)["state"] == "completed")
        resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, before)
        same(worker.result(), counts(5, completed=5))
    for execution in waiting:
        same([(a["type"], a["end"]) for a in attempts(at, execution)],
             [("initial", "ended_success")])
        same(stream(at, execution, "stdout"), b"run\n")
    # a pause before every attempt to start something again: no loop without end
    gone = ask(at, "events", "--type", "released", "--limit", "1000")["items"]
    assert len(gone) < 40, len(gone)


@case("a worker short of descriptors runs as many jobs as it can, and seldom tries more")
def _():
    at = store()
    if not at[1].startswith("sqlite:"):
        return
    with Worker(at, "--concurrency", "8", "--max", "20") as worker:
        until(worker.left, "it runs")
        time.sleep(0.5)  # its threads have opened what they need
        without_descriptors(worker, but=18)
        path = pathlib.Path(scratch("batch"))
        path.write_text(json.dumps([{"lane": "l", "payload": {"argv": ["sleep", "0.2"]}}] * 20),
                        encoding="utf-8")
        ask(at, "submit-batch", str(path))
        same(worker.result(), counts(20, completed=20))
    gone = ask(at, "events", "--type", "released", "--limit", "1000")["items"]
    assert 0 < len(gone) < 40, len(gone)


@case("--drain ends when nothing can be started, and the work stays")
def _():
    at = store()
    if not at[1].startswith("sqlite:"):
        return
    go = scratch("go")
    shell(at, f"until test -e {go}; do sleep 0.02; done")
    left = shell(at, "true")
    with Worker(at, "--drain") as worker:
        worker.logs("event=job_started")
        without_descriptors(worker)
        pathlib.Path(go).touch()
        for _ in range(5):
            worker.logs("event=job_not_started")
            worker.log = ""
        worker.process.wait(timeout=PATIENCE)
        error = worker.result(status=69)["error"]
        same((error["code"], error["detail"]["reason"]), ("unavailable", "resources"))
        assert "jobs cannot be started: " in error["message"], error
    found = show(at, left)
    same((found["state"], found["retries"], found["reclaims"]), ("waiting", 0, 0))


@case("the directory of sockets is made anew when somebody has removed it")
def _():
    at = store()
    with Worker(at) as worker:
        until(worker.left, "the directory")
        for path in worker.left():
            shutil.rmtree(path)
        execution = shell(at, 'stat -c %a "$(dirname "$BELAY_SOCKET")"')
        until(lambda: show(at, execution)["state"] not in ("waiting", "active"))
        same(stream(at, execution, "stdout"), b"700\n")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(1, completed=1))


@case("a command that is too long for the system fails for good")
def _():
    at = store()
    path = pathlib.Path(scratch("payload"))
    path.write_text(json.dumps({"argv": ["echo", "x" * (200 << 10)]}), encoding="utf-8")
    execution = submit(at, "--retries", "3", "--payload", f"@{path}")
    same(drain(at), counts(1, failed=1))
    failure = show(at, execution)["failure"]
    same((failure["class"], failure["message"]),
         ("permanent", "the command cannot be run: Argument list too long"))


# --- its own verbs ---


@case("inside a job the program's verbs work on its own attempt")
def _():
    at = store()
    go = scratch("go")
    tool = shlex.quote(str(tap.BELAY))
    execution = shell(at, f"""set -e
        exec 3>&1 > /dev/null
        echo before >&3
        {tool} progress --percent 40 --message 'almost there'
        {tool} frame --kind event --data 'an event'
        {tool} renew --lease 1m
        until test -e {go}; do sleep 0.02; done
        echo between >&3
        {tool} complete --result '{{"by":"itself"}}'
        echo after >&3
        exit 3""")
    with Worker(at) as worker:
        progress = until(lambda: show(at, execution).get("progress"))
        same((progress["percent"], progress["message"]), (40, "almost there"))
        pathlib.Path(go).touch()
        until(lambda: show(at, execution)["state"] == "completed")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(1, completed=1))
    same(ask(at, "result", execution)["result"], {"by": "itself"})
    same(stream(at, execution, "stdout"), b"before\nbetween\n")
    same([(f["kind"], f["bytes"]) for f in frames(at, execution)],
         [("stdout", b"before\n"), ("event", b"an event"), ("stdout", b"between\n")])
    same(len(attempts(at, execution)), 1)


@case("a result of a job may be nested as deeply as any other")
def _():
    at = store()
    tool = shlex.quote(str(tap.BELAY))
    for depth in (1, 24, 25, 30, 31, 32):
        deep = "[" * depth + "]" * depth
        execution = shell(at, f"{tool} -q complete --result '{deep}'")
        same(drain(at), counts(1, completed=1))
        same(answer(*at, "result", execution), deep + "\n")
        found = ask(at, "result", execution)
        same(json.loads(found["result_text"]) if depth > 24 else found["result"],
             json.loads(deep))
    execution = shell(at, f"{tool} -q complete --result '{'[' * 33 + ']' * 33}' || exit 100")
    same(drain(at), counts(1, failed=1))
    assert "nested deeper than 32" in show(at, execution)["failure"]["detail"]


@case("after a job has ended its attempt its exit status does not count")
def _():
    at = store()
    tool = shlex.quote(str(tap.BELAY))
    failed = shell(at, f"{tool} fail --class permanent --message mine; exit 0")
    waits = shell(at, f"test $BELAY_FENCE != 1 || {{ {tool} delay --for 10ms; exit 9; }}")
    back = shell(at, f"test $BELAY_FENCE != 1 || {{ {tool} release; exit 9; }}; echo again")
    with Worker(at) as worker:
        until(lambda: all(show(at, e)["state"] in ("completed", "failed")
                          for e in (failed, waits, back)))
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(5, completed=2, failed=1, released=2))
        aborted = shell(at, f"{tool} abort --reason enough; exit 0")
    with Worker(at) as worker:
        worker.logs(f"event=job_ended execution={aborted} attempt=0 end=aborted")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(1, failed=1))
    failure = show(at, failed)["failure"]
    same((failure["class"], failure["message"]), ("permanent", "mine"))
    for execution in (waits, back):
        same([(a["type"], a["end"]) for a in attempts(at, execution)],
             [("initial", "ended_success")])
    same(stream(at, back, "stdout"), b"again\n")


@case("inside a job what is no verb of its own needs a store that is named")
def _():
    at = store()
    tool = shlex.quote(str(tap.BELAY))
    place = pathlib.Path(scratch("place"))
    place.mkdir()
    execution = shell(at, f"""cd {place}
        for line in 'submit --lane l' ls 'cancel exe_1' 'show exe_1' check doctor; do
            {tool} $line; echo $?
        done 2>&1
        {tool} version > version && {tool} help > help && {tool} progress --percent 1 -q
        BELAY_STORE=sqlite:own.db {tool} submit --lane l > id
        {tool} check sqlite:own.db > check; {tool} --store sqlite:own.db -q ls | cmp - id""")
    same(drain(at), counts(1, completed=1))
    same(stream(at, execution, "stdout").decode().split("\n"),
         [line for verb in ("submit", "ls", "cancel", "show", "check", "doctor") for line in
          (f"belay: {verb}: inside a job the store must be named (--store or BELAY_STORE)",
           "2")] + [""])
    same(sorted(p.name for p in place.iterdir() if not p.name.startswith("own.db-")),
         ["check", "help", "id", "own.db", "version"])


def say(connection, request):
    """One request as a line, and the answer."""
    text = request if isinstance(request, bytes) else json.dumps(request).encode()
    connection.sendall(text + b"\n")
    return json.loads(connection.makefile("rb").readline())


def socket_of(worker):
    """A connection to the only socket there is."""
    path = until(worker.sockets, "a socket")[0]
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE)
    connection.connect(str(path))
    return connection


@case("the socket is private, and takes the verbs of its own handle alone")
def _():
    at = store()
    go = scratch("go")
    first = shell(at, f"echo begins; until test -e {go}; do sleep 0.02; done")
    with Worker(at) as worker:
        path = until(worker.sockets, "a socket")[0]
        same(stat.S_IMODE(path.stat().st_mode), 0o600)
        same(stat.S_IMODE(path.parent.stat().st_mode), 0o700)
        with socket_of(worker) as peer:
            for request, code in (
                    (b"{", "invalid"), (b"\xff\x00\x01", "invalid"), (b"[]", "invalid"),
                    ({"op": "submit", "args": {"lane": "l"}}, "invalid"),
                    ({"op": "progress", "args": []}, "invalid"),
                    ({"op": "progress", "args": {"unknown": 1}}, "invalid"),
                    ({"op": "progress", "args": {"message_text": "m"}}, "invalid"),
                    ({"op": "complete", "args": {"result_text": "[1"}}, "invalid"),
                    ({"op": "complete", "args": {"result_text": [1]}}, "invalid"),
                    ({"op": "progress", "args": {"percent": 101}}, "invalid"),
                    ({"op": "complete", "args": {"claim_next": {"lanes": ["l"]}}}, "invalid"),
                    ({"op": "release", "args": {"handle": "blh1_AAAA"}}, "bad_handle")):
                got = say(peer, request)
                same((got["ok"], got["error"]["code"]), (False, code))
            got = say(peer, {"op": "progress", "args": {"percent": 5, "message": "m"}})
            same(got["ok"], True)
            got = say(peer, {"op": "renew", "args": {"lease": 60000}})
            same((got["ok"], got["answer"]["fence"]), (True, show(at, first)["fence"]))
            until(lambda: len(frames(at, first)) == 1)
            for seq, repeated in ((7, None), (7, True), (8, None), (None, None)):
                got = say(peer, {"op": "frame", "args": {
                    "kind": "blob", "data_base64": "AP8=", **({"seq": seq} if seq else {})}})
                same((got["ok"], got["answer"].get("duplicate")), (True, repeated))
        same([(f["bytes"], f.get("caller_seq")) for f in frames(at, first)],
             [(b"begins\n", None), *((b"\x00\xff", n) for n in (7, 8, None))])
        pathlib.Path(go).touch()
        until(lambda: show(at, first)["state"] == "completed")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(1, completed=1))


@case("verbs that many processes of a job call at once are all heard")
def _():
    at = store()
    tool = shlex.quote(str(tap.BELAY))
    execution = shell(at, f"""for i in $(seq 60); do
            {tool} -q frame --kind event --data $i || echo $i >&2 &
        done; wait""")
    same(drain(at), counts(1, completed=1))
    same(stream(at, execution, "stderr"), b"")
    same(sorted(int(f["bytes"]) for f in frames(at, execution)), list(range(1, 61)))


@case("a peer has a second to speak before another gets its place")
def _():
    at = store()
    go = scratch("go")
    execution = shell(at, f"until test -e {go}; do sleep 0.02; done")
    with Worker(at) as worker:
        began = time.monotonic()
        silent = [socket_of(worker) for _ in range(8)]
        others = [socket_of(worker) for _ in range(16)]
        for peer in others:
            peer.sendall(b'{"op":"progress","args":{"percent":1}}\n')
        for peer in others:
            same(json.loads(peer.makefile("rb").readline())["ok"], True)
        assert 0.9 < time.monotonic() - began < 20, time.monotonic() - began
        for peer in (*silent, *others):
            peer.close()
        pathlib.Path(go).touch()
        until(lambda: show(at, execution)["state"] == "completed")
        worker.signal(signal.SIGTERM)
        worker.result()


@case("peers that send nothing, or no end, do not hold the job up")
def _():
    at = store()
    go = scratch("go")
    execution = shell(at, f"while echo beat; ! test -e {go}; do sleep 0.02; done; echo end")
    with Worker(at) as worker:
        silent = [socket_of(worker) for _ in range(20)]
        with contextlib.suppress(OSError):
            for peer in silent[:4]:
                peer.sendall(b'{"op":')
        endless = socket_of(worker)
        with contextlib.suppress(OSError):  # it is hung up on
            for _ in range(64):
                endless.sendall(b"x" * 65536)
        deaf = socket_of(worker)
        deaf.setblocking(False)
        with contextlib.suppress(OSError):
            for _ in range(10000):
                deaf.send(b'{"op":"nothing"}\n')
        with socket_of(worker) as peer:
            same(say(peer, {"op": "progress", "args": {"percent": 1}})["ok"], True)
        pathlib.Path(go).touch()
        until(lambda: show(at, execution)["state"] == "completed")
        for peer in (*silent, endless, deaf):
            peer.close()
        worker.signal(signal.SIGTERM)
        worker.result()
    assert stream(at, execution, "stdout").endswith(b"beat\nend\n")


# --- leases ---


@case("a lease is renewed beside a job that takes longer")
def _():
    at = store()
    quiet = shell(at, "sleep 3")
    with Worker(at, "--lease", "1s") as worker, Worker(at, "--lease", "1s") as other:
        until(lambda: show(at, quiet)["state"] == "completed")
        for each in (worker, other):
            each.signal(signal.SIGTERM)
        same(worker.result()["completed"] + other.result()["completed"], 1)
    same([(a["type"], a["end"]) for a in attempts(at, quiet)], [("initial", "ended_success")])


@case("a cancel kills the process group, TERM and then KILL, and nothing is written after it")
def _():
    at = store()
    pids, heard = scratch("pids"), scratch("heard")
    execution = shell(at, f"""trap 'echo heard > {heard}' TERM
        sh -c 'trap "" TERM; echo $$ > {pids}; while :; do echo beat; sleep 0.05; done' &
        while :; do wait; done""")
    with Worker(at, "--grace", "700ms", "--lease", "1m") as worker:
        child = pid_in(pids)
        until(lambda: stream(at, execution, "stdout"), "output")
        began = time.monotonic()
        ask(at, "cancel", execution, "--reason", "enough")
        before = digest(at, execution)
        until(lambda: read(heard), "TERM")  # long before the lease is renewed
        assert time.monotonic() - began < 15
        until(lambda: not is_alive(child), "KILL")
        until(lambda: not children(worker.pid), "the process is reaped")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(1, lost=1))
    same(digest(at, execution), before)
    same(show(at, execution)["state"], "cancelled")


@case("a job that has left its process group is ended all the same, and only once")
def _():
    at = store()
    pids, heard = scratch("pids"), scratch("heard")
    script = scratch("leave.py")
    pathlib.Path(script).write_text(f"""import os, signal, sys
def hear(*_):
    with open({heard!r}, "a") as file:
        file.write("heard\\n")
signal.signal(signal.SIGTERM, hear)
if sys.argv[1] == "leaves":
    os.setpgid(0, os.getpgid(os.getppid()))
with open({pids!r}, "w") as file:
    file.write(f"{{os.getpid()}}\\n")
while True:
    signal.pause()
""", encoding="utf-8")
    for how in ("leaves", "stays"):
        pathlib.Path(pids).write_text("", encoding="utf-8")
        pathlib.Path(heard).write_text("", encoding="utf-8")
        execution = submit(at, argv=(sys.executable, script, how))
        with Worker(at, "--grace", "700ms") as worker:
            pid = pid_in(pids)
            ask(at, "cancel", execution)
            until(lambda: not is_alive(pid), "KILL")
            same(read(heard), "heard\n")
            worker.signal(signal.SIGTERM)
            same(worker.result(), counts(1, lost=1))


@case("what keeps the outputs of a cancelled job open costs no processor time")
def _():
    at = store()
    pids = scratch("pids")
    execution = shell(at, f"(trap '' TERM; exec sleep 600) & echo $! > {pids}; wait")
    with Worker(at, "--grace", "8s") as worker:
        child = pid_in(pids)
        ask(at, "cancel", execution)
        until(lambda: len(children(worker.pid)) == 1 and children(worker.pid)[0][0] == "Z",
              "the job's own end")
        spent = []
        for _ in range(2):
            time.sleep(2.5)  # so long may outputs stay open, and again
            fields = read(f"/proc/{worker.pid}/stat").rpartition(")")[2].split()
            spent.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
        assert is_alive(child) and spent[1] - spent[0] < 0.5, spent
        until(lambda: not is_alive(child), "KILL")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(1, lost=1))


@case("a log that nobody reads holds up no kill, no renewal and no signal")
def _():
    at = store()
    beats = [scratch("beat") for _ in range(2)]
    held = [run_until_told(at, beat) for beat in beats]
    with Worker(at, "--concurrency", "3", "--lease", "2s", "--grace", "1s") as worker:
        pids = [pid_in(beat) for beat in beats]
        fcntl.fcntl(worker.process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        jobs = [shell(at, "true") for _ in range(40)]
        until(lambda: all(show(at, e)["state"] == "completed" for e in jobs))
        ask(at, "cancel", held[0])
        until(lambda: not is_alive(pids[0]), "TERM")
        end = time.monotonic() + 4  # twice the lease
        until(lambda: time.monotonic() >= end)
        found = show(at, held[1])
        same((found["state"], found["reclaims"], is_alive(pids[1])), ("active", 0, True))
        for _ in range(2):
            worker.signal(signal.SIGTERM)
            time.sleep(0.2)
        until(lambda: not is_alive(pids[1]), "TERM")
        until(lambda: show(at, held[1])["state"] == "waiting")
        out, log = worker.process.communicate(timeout=PATIENCE)
    same((worker.process.returncode, json.loads(out)), (0, counts(42, 40, lost=1, released=1)))
    assert log.endswith(b"\n") and b"event=job_started" in log.splitlines()[0], log


@case("the log says how many of its lines nobody could read")
def _():
    at = store()
    with Worker(at) as worker:
        fcntl.fcntl(worker.process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        jobs = [shell(at, "true") for _ in range(40)]
        until(lambda: all(show(at, e)["state"] == "completed" for e in jobs))
        told = os.read(worker.process.stderr.fileno(), 65536).splitlines()
        worker.signal(signal.SIGTERM)
        _, log = worker.process.communicate(timeout=PATIENCE)
    line, = log.splitlines()
    assert b"event=stopping" in line, line
    same(len(told) + int(re.search(rb" dropped=(\d+)$", line)[1]), 80)


@case("a lease that was revoked ends the job, and another worker takes the work")
def _():
    at = store()
    pids = scratch("pids")
    execution = shell(at, f"echo $$ >> {pids}; test $(wc -l < {pids}) -gt 1 || exec sleep 600")
    with Worker(at, "--lease", "1m") as worker:
        first = pid_in(pids)
        ask(at, "revoke", execution)
        until(lambda: not is_alive(first), "TERM")
        until(lambda: show(at, execution)["state"] == "completed")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(2, completed=1, lost=1))


@case("an attempt that takes too long is ended")
def _():
    at = store()
    pids = scratch("pids")
    execution = shell(at, f"echo $$ > {pids}; exec sleep 600", "--attempt-timeout", "500ms")
    with Worker(at, "--lease", "1m") as worker:
        pid = pid_in(pids)
        until(lambda: not is_alive(pid), "TERM")
        until(lambda: show(at, execution)["state"] == "failed")
        worker.logs(r"event=job_lost .* reason=timeout\n")
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(1, lost=1))
    same(show(at, execution)["failure"]["class"], "timeout")


@case("a worker that is killed takes its job with it, and another finishes the work")
def _():
    at = store()
    pids, again = scratch("pids"), scratch("again")
    execution = shell(at, f"echo $$ >> {pids}; echo try; "
                          f"test -e {again} || {{ touch {again}; exec sleep 600; }}")
    with Worker(at, "--lease", "1s") as worker:
        pid = pid_in(pids)
        until(lambda: stream(at, execution, "stdout"), "output")
        worker.signal(signal.SIGKILL)
        worker.process.wait()
        until(lambda: not is_alive(pid), "its death")
    with Worker(at, "--lease", "1s") as other:
        until(lambda: show(at, execution)["state"] == "completed")
        other.signal(signal.SIGTERM)
        same(other.result(), counts(1, completed=1))
    same([(a["type"], a["end"]) for a in attempts(at, execution)],
         [("initial", "interrupted_reclaimed"), ("reclaim", "ended_success")])
    found = show(at, execution)
    same((found["reclaims"], found["retries"]), (1, 0))
    same(ask(at, "check")["findings"], [])


@case("workers killed at any moment lose nothing: every execution ends exactly once")
def _():
    at = store()
    chance = random.Random(20)
    jobs = [shell(at, f"echo one; sleep 0.{chance.randrange(30):02}; echo two")
            for _ in range(24)]
    for _ in range(8):
        with Worker(at, "--lease", "300ms", "--concurrency", "3") as worker:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(timeout=chance.uniform(0.02, 0.5))
            worker.signal(signal.SIGKILL)
    with Worker(at, "--lease", "1s", "--concurrency", "4") as worker:
        until(lambda: all(show(at, e)["state"] == "completed" for e in jobs))
        worker.signal(signal.SIGTERM)
        worker.result()
    ends = [e["execution"] for e in ask(at, "events", "--type", "completion",
                                        "--limit", "1000")["items"]]
    same(sorted(ends), sorted(jobs))
    for execution in jobs:
        tries, found = attempts(at, execution), show(at, execution)
        same([a["end"] for a in tries],
             ["interrupted_reclaimed"] * (len(tries) - 1) + ["ended_success"])
        same((found["reclaims"], found["retries"]), (len(tries) - 1, 0))
        same(stream(at, execution, "stdout", len(tries) - 1), b"one\ntwo\n")
    same(ask(at, "check")["findings"], [])


@case("a worker that slept past its lease and was replaced writes nothing")
def _():
    at = store()
    beat = scratch("beat")
    execution = run_until_told(at, beat)
    with Worker(at, "--lease", "1s", "--worker", "slow") as slow:
        job = pid_in(beat)
        until(lambda: stream(at, execution, "stdout"), "output")
        slow.signal(signal.SIGSTOP)
        held = until(lambda: ask(at, "claim", "--lane", "l", "--worker", "quick")["claims"],
                     "a reclaim")[0]
        same(held["kind"], "reclaimed")
        answer(*at, "-q", "complete", "--handle", held["handle"], "--result", '"quick"')
        before = digest(at, execution)
        slow.signal(signal.SIGCONT)
        until(lambda: not is_alive(job), "TERM")
        until(lambda: not children(slow.pid), "the process is reaped")
        slow.signal(signal.SIGTERM)
        same(slow.result(), counts(1, lost=1))
    same(digest(at, execution), before)
    same([(a["type"], a["worker"], a["end"]) for a in attempts(at, execution)],
         [("initial", "slow", "interrupted_reclaimed"), ("reclaim", "quick", "ended_success")])
    same(ask(at, "result", execution)["result"], "quick")


@case("a store that is away for a moment costs nothing, for longer than the lease the job")
def _():
    at = store()
    if not at[1].startswith("sqlite:"):
        return  # its file is locked here
    path = at[1].removeprefix("sqlite:")
    for away, attempts_wanted in ((0.7, 1), (4, 2)):
        pids = scratch("pids")
        execution = shell(at, f"echo $$ >> {pids}; echo begun; "
                              f"test $(wc -l < {pids}) -gt 1 || sleep {away + 2}; echo done")
        with Worker(at, "--lease", "1500ms") as worker:
            pid_in(pids)
            until(lambda: stream(at, execution, "stdout"), "output")
            other = sqlite3.connect(path, isolation_level=None, timeout=30)
            other.execute("begin immediate")
            end = time.monotonic() + away
            until(lambda: time.monotonic() >= end)
            other.execute("rollback")
            other.close()
            until(lambda: show(at, execution)["state"] == "completed")
            worker.signal(signal.SIGTERM)
            worker.result()
        same(len(attempts(at, execution)), attempts_wanted)
        same(stream(at, execution, "stdout", attempts_wanted - 1), b"begun\ndone\n")


# --- the end of a worker ---


@case("--drain ends when nothing is due; what is for later stays")
def _():
    at = store()
    same(drain(at), counts())
    later = shell(at, "true", "--delay", "1h")
    jobs = [shell(at, "true") for _ in range(20)]
    elsewhere = shell(at, "true", lane="other")
    same(drain(at, "--concurrency", "3"), counts(20, completed=20))
    same({show(at, e)["state"] for e in jobs}, {"completed"})
    same((show(at, later)["state"], show(at, elsewhere)["state"]), ("delayed", "waiting"))


@case("--drain takes what running jobs submit")
def _():
    at = store()
    tool = shlex.quote(str(tap.BELAY))
    more = " ".join(shlex.quote(word) for word in at)
    shell(at, f"{tool} {more} -q submit --lane l -- sh -c 'echo second'")
    same(drain(at, "--concurrency", "2"), counts(2, completed=2))


@case("--max ends after so many jobs and leaves the others")
def _():
    at = store()
    jobs = [shell(at, "true") for _ in range(7)]
    same(work(at, "--max", "5", "--concurrency", "3"), counts(5, completed=5))
    same(sorted(show(at, e)["state"] for e in jobs), ["completed"] * 5 + ["waiting"] * 2)
    same(work(at, "--max", "2"), counts(2, completed=2))


@case("work is only claimed for slots that are free")
def _():
    at = store()
    go = scratch("go")
    jobs = [shell(at, f"until test -e {go}; do sleep 0.02; done") for _ in range(5)]
    with Worker(at, "--concurrency", "2") as worker:
        until(lambda: [show(at, e)["state"] for e in jobs].count("active") == 2)
        same(sorted(show(at, e)["state"] for e in jobs), ["active"] * 2 + ["waiting"] * 3)
        pathlib.Path(go).touch()
        until(lambda: all(show(at, e)["state"] == "completed" for e in jobs))
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(5, completed=5))


@case("TERM and INT: no more is claimed, running jobs end by themselves")
def _():
    for number in (signal.SIGTERM, signal.SIGINT):
        at = store()
        go, pids = scratch("go"), scratch("pids")
        running = shell(at, f"echo $$ > {pids}; until test -e {go}; do sleep 0.02; done; "
                            "echo to the end")
        waiting = shell(at, "true")
        with Worker(at, "--lease", "1s") as worker:
            pid_in(pids)
            worker.signal(number)
            until(lambda: b"event=stopping" in os.read(worker.process.stderr.fileno(), 65536))
            same(show(at, running)["state"], "active")
            pathlib.Path(go).touch()
            same(worker.result(), counts(1, completed=1))
        same(stream(at, running, "stdout"), b"to the end\n")
        same(show(at, waiting)["state"], "waiting")


@case("a second TERM ends the jobs and gives their work back, with nothing charged")
def _():
    at = store()
    pids = scratch("pids")
    execution = shell(at, f"trap '' TERM; echo $$ >> {pids}; echo begun; "
                          f"test $(wc -l < {pids}) -gt 1 || while :; do sleep 0.05; done")
    with Worker(at, "--grace", "300ms") as worker:
        job = pid_in(pids)
        until(lambda: stream(at, execution, "stdout"), "output")
        worker.signal(signal.SIGTERM)
        until(lambda: b"event=stopping" in os.read(worker.process.stderr.fileno(), 65536))
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(1, released=1))
        assert not is_alive(job)
    found = show(at, execution)
    same((found["state"], found["retries"], found["reclaims"]), ("waiting", 0, 0))
    same(drain(at), counts(1, completed=1))
    same([(a["type"], a["end"]) for a in attempts(at, execution)], [("initial", "ended_success")])
    same(stream(at, execution, "stdout"), b"begun\nbegun\n")


def by_hand(at, *words):
    """Holds what is due for a line of its output."""
    held, = ask(at, "claim", "--lane", "l", "--worker", "hand")["claims"]
    answer(*at, "-q", "frame", "--handle", held["handle"], "--data", "by hand\n", *words)
    answer(*at, "-q", "release", "--handle", held["handle"])


@case("what goes on after the epoch was raised loses no line")
def _():
    at = store()
    if len(sys.argv) > 1:  # for all namespaces of the server, which others use
        return
    pids = scratch("pids")
    tool = shlex.quote(str(tap.BELAY))
    script = f"""echo $$ >> {pids}; n=$(wc -l < {pids})
        for i in 1 2 3; do echo $n $i; {tool} -q frame --kind event --data $n; done
        {tool} frame --kind nothing --data refused 2> /dev/null
        test $n -gt 3 || exec sleep 600"""
    execution = shell(at, script)
    by_hand(at, "--seq", str((1 << 53) - 1))
    for n in range(1, 4):
        with Worker(at) as worker:
            until(lambda n=n: len(frames(at, execution)) == 6 * n + 1, "output")
            for _ in range(2):
                worker.signal(signal.SIGTERM)
                worker.logs("event=stopping")
                worker.log = ""
            same(worker.result(), counts(1, released=1))
        ask(at, "epoch", "raise")
    by_hand(at)
    same(drain(at), counts(1, completed=1))
    same(len(attempts(at, execution)), 1)
    same(stream(at, execution, "stdout").decode().splitlines(),
         ["by hand", *(f"{n} {i}" for n in range(1, 4) for i in (1, 2, 3)), "by hand",
          *(f"4 {i}" for i in (1, 2, 3))])
    same(b"".join(f["bytes"] for f in frames(at, execution) if f["kind"] == "event"),
         b"111222333444")
    same(ask(at, "check")["findings"], [])


@case("a second TERM gives nothing back that has ended by itself")
def _():
    at = store()
    pids = scratch("pids")
    execution = shell(at, f"sleep 600 & echo $! > {pids}; echo done")
    with Worker(at, "--grace", "300ms") as worker:
        left = pid_in(pids)
        until(lambda: len(children(worker.pid)) == 1 and children(worker.pid)[0][0] == "Z",
              "its end")
        for _ in range(3):
            worker.signal(signal.SIGTERM)
            time.sleep(0.1)
        same(worker.result(), counts(1, completed=1))
    same(show(at, execution)["state"], "completed")
    os.kill(left, signal.SIGKILL)


@case("a third TERM does not wait for the grace, and the work is given back all the same")
def _():
    at = store()
    pids = scratch("pids")
    execution = shell(at, f"trap '' TERM; echo $$ >> {pids}; while :; do sleep 0.05; done")
    with Worker(at, "--grace", "10m", "--lease", "10m") as worker:
        job = pid_in(pids)
        for _ in range(3):
            worker.signal(signal.SIGTERM)
            until(lambda: b"event=stopping" in os.read(worker.process.stderr.fileno(), 65536))
        same(worker.result(), counts(1, released=1))
        assert not is_alive(job)
    found = show(at, execution)
    same((found["state"], found["retries"], found["reclaims"]), ("waiting", 0, 0))


@case("signals that come while a worker ends change nothing")
def _():
    for _ in range(4):
        at = store()
        with Worker(at) as worker:
            until(worker.left, "it runs")
            while worker.process.poll() is None:
                worker.signal(signal.SIGTERM)
            same(worker.result(), counts())


@case("jobs leave no zombies and no sockets behind")
def _():
    at = store()
    jobs = [shell(at, "true" if i % 2 else "sleep 0.01 & exit 1") for i in range(12)]
    with Worker(at, "--concurrency", "4") as worker:
        until(lambda: all(show(at, e)["state"] in ("completed", "failed") for e in jobs))
        until(lambda: not worker.sockets(), "the sockets are gone")
        same(children(worker.pid), [])
        worker.signal(signal.SIGTERM)
        same(worker.result(), counts(12, completed=6, failed=6))


@case("a worker that cannot work says why")
def _():
    at = store()
    usage = answer("work", "--help")
    assert re.search(r"--lease D\b[^-]*\(100ms to 1d;", usage), usage
    for words, status in (((), 2), (("--lane", "l", "--concurrency", "0"), 2),
                          (("--lane", "l", "--lease", "99ms", "--drain"), 2),
                          (("--lane", "l", "--capability", "a,b"), 2)):
        ran = belay(*at, "work", *words)
        same((ran.returncode, ran.stdout), (status, b""))
        assert ran.stderr.splitlines()[-1].startswith(b"belay: work: "), ran.stderr
    ran = belay("--store", "sqlite:/no/such/folder/x.db", "work", "--lane", "l")
    same((ran.returncode, ran.stdout), (69, b""))


@case("every job is logged in a line when it starts and when it ends, but for -q")
def _():
    at = store()
    shell(at, "exit 3")
    ran = belay(*at, "work", "--lane", "l", "--drain")
    same(ran.returncode, 0)
    lines = ran.stderr.decode().splitlines()
    same(len(lines), 2)
    assert "event=job_started" in lines[0] and "pid=" in lines[0], lines
    assert "event=job_ended" in lines[1] and 'message="exit status 3"' in lines[1], lines
    shell(at, "true")
    same(answer(*at, "-q", "work", "--lane", "l", "--drain"), "1\n")


tap.main()
