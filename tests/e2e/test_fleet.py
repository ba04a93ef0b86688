#!/usr/bin/env -S python3 -B
"""Fleets through the program: holding a subject, yielding, looking, and what a killed holder leaves."""

import json
import os
import signal
import subprocess
import time

import tap
from tap import BELAY, answer, belay, case, same

FLEET = f"e2e-{os.getpid()}"


def check(held, what):
    if not held:
        raise AssertionError(what)


def ask(*words):
    return json.loads(answer("--json", *words))


def items(*words):
    return ask(*words)["items"]


def refused(*words):
    ran = belay("--json", *words)
    same(ran.stdout, b"")
    error = json.loads(ran.stderr)["error"]
    return ran.returncode, error["code"], error["detail"].get("reason")


def status():
    return ask("fleet", "status", FLEET)


def until(condition, what):
    for _ in range(200):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(what)


class Holder:
    """A command that holds a subject; `first` is what it printed when it had it."""

    def __init__(self, subject, *words):
        self.run = subprocess.Popen([BELAY, "--output", "jsonl", "fleet", "contest", "claim", subject,
                                     "--fleet", FLEET, "--owner", f"owner of {subject}", *words],
                                    bufsize=0,  # communicate() knows nothing of lines read ahead
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first = json.loads(self.run.stdout.readline())

    def end(self, number=signal.SIGINT):
        """The exit status, and what else it printed."""
        if number:
            self.run.send_signal(number)
        out, err = self.run.communicate(timeout=20)
        return self.run.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


@case("the page about fleets runs as it is written")
def page():
    text = (tap.SOURCE / "docs/fleet.md").read_text()
    script = text.split("```sh\n", 1)[1].split("```", 1)[0].replace("workers", f"{FLEET}-page")
    env = dict(os.environ, PATH=f"{tap.BUILD}:{os.environ['PATH']}")
    ran = subprocess.run(["sh", "-eu", "-c", script], env=env, stdout=subprocess.PIPE, text=True,
                         timeout=30)
    same(ran.returncode, 0)
    for part in ["claimed", "somebody else has it", "released", "revoked", "forced", "removed"]:
        check(part in ran.stdout, part)


@case("a claim is held until the command is told to stop, and is seen meanwhile")
def held():
    holder = Holder("nightly", "--kind", "7")
    same((holder.first["event"], holder.first["owner"], holder.first["expires_at_ms"]),
         ("claimed", "owner of nightly", None))
    same(refused("fleet", "contest", "claim", "nightly", "--kind", "7", "--owner", "me", "--fleet", FLEET),
         (4, "lease_held", "contest"))
    same(refused("fleet", "contest", "claim", "nightly", "--kind", "7", "--owner", "me", "--fleet", FLEET,
                 "--wait", "50ms")[1], "timeout")
    other = Holder("nightly", "--for", "0s")  # of kind 0
    same([line["event"] for line in other.end(None)[1]], ["released"])
    seen = status()
    same([(c["subject"], c["kind"], c["token"]) for c in seen["contests"]],
         [("nightly", 7, holder.first["token"])])
    same([(m["pid"], m["life"], m["holds"]) for m in seen["members"]], [(holder.run.pid, "alive", 1)])
    same([r["name"] for r in seen["rings"]], ["contest"])
    shown = answer("fleet", "status", FLEET)
    for table in "\nmembers\nnode ", "\nrings\nkind ", "\ncontests\nsubject ":
        check(table in shown, table)
    check(FLEET in [f["name"] for f in ask("fleet", "status")["fleets"]], "listed")
    same([c["owner"] for c in items("fleet", "contest", "ls", "--fleet", FLEET)], ["owner of nightly"])
    rc, rest, err = holder.end()
    same((rc, [line["event"] for line in rest], err), (0, ["released"], ""))
    same(items("fleet", "contest", "ls", "--fleet", FLEET), [])
    same([c["held"] for c in items("fleet", "contest", "ls", "--fleet", FLEET, "--all")], [False, False])


@case("who waits gets the subject when its holder is killed, with a higher token")
def killed():
    holder = Holder("k")
    waiter = subprocess.Popen([BELAY, "-q", "fleet", "contest", "claim", "k", "--fleet", FLEET, "--owner",
                               "next", "--wait", "20s", "--for", "0s"], stdout=subprocess.PIPE)
    until(lambda: len(status()["members"]) == 2, "the waiter joined")
    holder.end(signal.SIGKILL)
    out, _ = waiter.communicate(timeout=20)
    same(waiter.returncode, 0)
    check(int(out) > int(holder.first["token"]), "token")
    last = items("fleet", "events", FLEET, "--tail", "3")
    same([(e["event"], e.get("reason")) for e in last],
         [("revoked", "dead"), ("claimed", None), ("released", None)])


@case("who is told to stop before the subject is had fails")
def stopped():
    holder = Holder("s")
    waiter = subprocess.Popen([BELAY, "--json", "fleet", "contest", "claim", "s", "--fleet", FLEET, "--owner",
                               "next", "--wait", "20s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: len(status()["members"]) == 2, "the waiter joined")
    waiter.send_signal(signal.SIGINT)
    out, err = waiter.communicate(timeout=20)
    same((waiter.returncode, out, json.loads(err)["error"]["code"]), (1, b"", "cancelled"))
    same(holder.end()[0], 0)


@case("a renewed claim outlives its time; one that is stopped for longer loses it")
def renewed():
    holder = Holder("t", "--ttl", "300ms")
    time.sleep(0.6)
    same(status()["contests"][0]["token"], holder.first["token"])
    holder.run.send_signal(signal.SIGSTOP)
    second = Holder("t", "--wait", "10s")
    check(int(second.first["token"]) > int(holder.first["token"]), "token")
    holder.run.send_signal(signal.SIGCONT)
    rc, rest, err = holder.end(None)
    same((rc, rest), (4, []))
    check("fleet contest claim" in err, err)
    second.end()


class Runner:
    """A command that runs while a subject is held; `first` is the first line that it printed."""

    def __init__(self, subject, script, *words):
        self.run = subprocess.Popen([BELAY, "fleet", "contest", "claim", subject, "--fleet", FLEET, "--owner",
                                     "runner", *words, "--", "sh", "-c", script], bufsize=0,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first = self.run.stdout.readline().decode().split()

    def end(self, number=None, said=b""):
        """The exit status and what else it printed."""
        if number:
            self.run.send_signal(number)
        out, err = self.run.communicate(said, timeout=20)
        return self.run.returncode, out.decode(), err.decode()


def command(*words):
    """What a command ends with that is run with a subject that nobody else has."""
    ran = belay("fleet", "contest", "claim", "c", "--fleet", FLEET, "--owner", "me", *words)
    return ran.returncode, ran.stdout.decode()


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@case("a command has the subject while it runs, its token, its input and its output")
def commanded():
    # Its pid, its process group and its token.
    run = Runner("c", 'echo $$ $(cut -d" " -f5 /proc/$$/stat) $BELAY_FLEET_TOKEN; cat; exit 5', "--ttl", "300ms")
    pid, group, token = run.first
    same(group, pid)
    time.sleep(0.6)  # it is renewed
    seen = status()["contests"]
    same([(c["subject"], c["owner"], c["token"]) for c in seen], [("c", "runner", token)])
    same(command("--", "echo", "no"), (4, ""))
    same(run.end(said=b"to the end"), (5, "to the end", ""))
    same(items("fleet", "contest", "ls", "--fleet", FLEET), [])


@case("who waits with a command runs it when the one before has ended")
def queued():
    run = Runner("c", "echo $BELAY_FLEET_TOKEN; read line")
    waiter = subprocess.Popen([BELAY, "fleet", "contest", "claim", "c", "--fleet", FLEET, "--owner", "next",
                               "--wait", "20s", "--", "sh", "-c", "echo $BELAY_FLEET_TOKEN"],
                              stdout=subprocess.PIPE)
    until(lambda: len(status()["members"]) == 2, "the waiter joined")
    time.sleep(0.1)
    same(waiter.poll(), None)
    same(run.end(said=b"go\n")[0], 0)
    out, _ = waiter.communicate(timeout=20)
    same(waiter.returncode, 0)
    check(int(out) > int(run.first[0]), "token")


@case("a command's exit status is that of the claim, and so is its signal")
def statuses():
    same(command("--", "true"), (0, ""))
    same(command("--", "sh", "-c", "exit 77"), (77, ""))
    same(command("--", "sh", "-c", "kill -9 $$"), (137, ""))
    same(command("--", "echo", "--help", ""), (0, "--help \n"))  # nothing behind -- is ours
    same(command("--", "no such command"), (127, ""))
    same(command("--", "/dev/null"), (126, ""))
    same(command("--for", "1s", "--", "true"), (2, ""))
    same(refused("fleet", "contest", "claim", "c", "--fleet", FLEET, "--owner", "me", "--", "/none/such"),
         (127, "unavailable", "command_missing"))


@case("signals go to the command, which may take them as it likes")
def signalled():
    # The group is told, so what it waits for ends with it; the shell may have noticed that before its trap.
    run = Runner("c", "sleep 60 & trap 'echo told; exit 3' TERM; echo ready; wait")
    same(run.end(signal.SIGTERM), (3, "told\n", ""))
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        run = Runner("c", "echo ready; exec sleep 60")
        same(run.end(number)[0], 128 + number)
    run = Runner("c", "n=0; trap 'n=$((n+1)); echo $n' INT; echo ready; while [ $n -lt 2 ]; do sleep 0.05; done; exit 0")
    for n in b"1\n", b"2\n":  # the second one is the command's, too
        run.run.send_signal(signal.SIGINT)
        same(run.run.stdout.readline(), n)
    same(run.end()[0], 0)
    same(items("fleet", "contest", "ls", "--fleet", FLEET), [])


@case("a command whose claim is lost is told to end, and is ended if it does not")
def ended():
    words = ("fleet", "contest", "release", "c", "--fleet", FLEET)
    run = Runner("c", "sleep 60 & echo $$ $!; trap 'echo told; exit 0' TERM; wait")
    same(ask(*words)["released"], True)
    rc, out, err = run.end()
    same((rc, out), (4, "told\n"))
    check("taken away" in err, err)
    until(lambda: not any(is_running(pid) for pid in run.first), "all of its group are gone")
    run = Runner("c", "trap '' TERM; echo $$; while :; do sleep 0.1; done", "--grace", "300ms")
    began = time.monotonic()
    same(ask(*words)["released"], True)
    same(run.end()[0], 4)
    check(0.3 <= time.monotonic() - began < 5, "after the grace")
    until(lambda: not is_running(run.first[0]), "killed")


@case("a command dies with the one who holds the subject for it, and the subject is free at once")
def orphaned():
    run = Runner("c", "echo $$; exec sleep 60")
    run.run.kill()
    run.run.wait()
    same(command("--", "echo", "mine"), (0, "mine\n"))
    until(lambda: not is_running(run.first[0]), "killed with it")


@case("release takes a subject away, if it is still the tenure that is meant")
def released():
    holder = Holder("r")
    token = holder.first["token"]
    words = ("fleet", "contest", "release", "r", "--fleet", FLEET)
    same(refused(*words, "--token", "1"), (4, "lease_lost", "superseded"))
    same(ask(*words, "--token", token)["released"], True)
    same(holder.end(None)[:2], (4, []))
    same(refused(*words)[1], "not_found")


@case("events can be followed, and a reset is told")
def followed():
    run = subprocess.Popen([BELAY, "--output", "jsonl", "fleet", "events", FLEET, "-f"],
                           stdout=subprocess.PIPE)
    watch = subprocess.Popen([BELAY, "--json", "fleet", "status", FLEET, "--watch", "--every", "50ms"],
                             stdout=subprocess.PIPE)
    json.loads(watch.stdout.readline())
    holder = Holder("f")
    until(lambda: json.loads(watch.stdout.readline())["contests"], "the watch sees it")
    epoch = status()["epoch"]
    until(lambda: json.loads(run.stdout.readline()).get("owner") == "owner of f", "the claim is told")
    same(ask("fleet", "reset", FLEET)["epoch"], epoch + 1)
    same(holder.end(None)[0], 4)
    told = []
    until(lambda: told.append(json.loads(run.stdout.readline())["event"]) or "reset" in told, told)
    for p in run, watch:
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=10)
        same(p.returncode, 0)


def sleeps(pid):
    """How often the threads of a process have gone to sleep."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as lines:
            total += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return total


@case("who follows sleeps until something happens, and is told at once")
def woken():
    run = subprocess.Popen([BELAY, "--output", "jsonl", "fleet", "events", FLEET, "-f", "--tail", "0"],
                           bufsize=0, stdout=subprocess.PIPE)
    until(lambda: run.pid in [m["pid"] for m in status()["members"]], "it is a member")
    time.sleep(0.3)
    before = sleeps(run.pid)
    time.sleep(2)
    idle = sleeps(run.pid) - before
    check(idle <= 8, f"slept {idle} times in 2 s")  # a look each second; 40 if it looked every 50 ms
    late = []
    for i in range(9):
        # Not as it was woken the last time: it shall be asleep again.
        time.sleep(0.05)
        if i % 3 == 0:
            ask("fleet", "publish", "woken", "--fleet", FLEET)
            told = [json.loads(run.stdout.readline())]
        else:
            same(command("--", "true"), (0, ""))
            told = [json.loads(run.stdout.readline()) for _ in range(2)]
        late.append(time.time() * 1000 - told[-1]["at_ms"])
        same([e["event"] for e in told], ["published"] if i % 3 == 0 else ["claimed", "released"])
    check(sorted(late)[4] < 50, f"told after {late} ms")
    began = time.monotonic()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=10)
    same(run.returncode, 0)
    check(time.monotonic() - began < 0.9, "a signal ends its sleep")


@case("messages are listed and followed by topic")
def messages():
    def publish(topic, *words):
        return ask("fleet", "publish", topic, "--fleet", FLEET, *words)

    def listed(*words):
        return [(e["topic"], e.get("data")) for e in items("fleet", "events", FLEET, "--topic", *words)]

    same(listed("a"), [])
    run = subprocess.Popen([BELAY, "--output", "jsonl", "fleet", "events", FLEET, "-f", "--topic", "a"],
                           stdout=subprocess.PIPE)
    publish("a", "--data", "one")
    publish("b", "--data", "two")
    publish("a", "--data", "three")
    same([json.loads(run.stdout.readline())["data"] for _ in range(2)], ["one", "three"])
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=10)
    same(run.returncode, 0)
    same(listed("a"), [("a", "one"), ("a", "three")])
    same(listed("a", "--tail", "1"), [("a", "three")])
    same(listed("b"), [("b", "two")])
    publish("raw", "--data", "@/dev/null")
    same(listed("raw"), [("raw", "")])
    check("published" in [e["event"] for e in items("fleet", "events", FLEET)], "all of them")
    same(refused("fleet", "publish", "t" * 244, "--fleet", FLEET, "--data", "x")[1:],
         ("invalid", "too_large"))


@case("the cache keeps what was put, until it expires or is deleted")
def cache():
    def put(key, value, *words):
        return ask("fleet", "cache", "put", key, value, "--fleet", FLEET, *words)

    def get(key, *words):
        return ask("fleet", "cache", "get", key, "--fleet", FLEET, *words)

    same(refused("fleet", "cache", "get", "k", "--fleet", FLEET)[1], "not_found")
    first = put("k", "one")
    same((first["bytes"], first["ttl_ms"]), (3, None))
    check(put("k", "two", "--ttl", "1h")["epoch"] > first["epoch"], "later changes have higher numbers")
    got = get("k")
    same(got["value"], "two")
    check(0 < got["ttl_ms"] <= 3600000, got)
    same(answer("-q", "fleet", "cache", "get", "k", "--fleet", FLEET), "two\n")
    put("x", "@/dev/null", "--prefix", "a/")
    same(get("a/x")["value"], "")
    same([e["key"] for e in items("fleet", "cache", "ls", "--fleet", FLEET, "--prefix", "a/")], ["x"])
    same(sorted(e["key"] for e in items("fleet", "cache", "ls", "--fleet", FLEET)), ["a/x", "k"])
    put("brief", "v", "--ttl", "1ms")
    until(lambda: belay("fleet", "cache", "get", "brief", "--fleet", FLEET).returncode == 3, "it expires")
    same(ask("fleet", "cache", "reset", "--fleet", FLEET, "--prefix", "a/")["removed"], 1)
    same(ask("fleet", "cache", "rm", "k", "--fleet", FLEET)["removed"], True)
    same(ask("fleet", "cache", "rm", "k", "--fleet", FLEET)["removed"], False)
    same(items("fleet", "cache", "ls", "--fleet", FLEET), [])


@case("what is wrong has its code and its exit status")
def wrong():
    none = f"{FLEET}-none"
    same(refused("fleet", "status", none)[1], "not_found")
    same(refused("fleet", "events", none)[1], "not_found")
    same(refused("fleet", "reset", none)[1], "not_found")
    same(refused("fleet", "rm", none)[1], "not_found")
    same(refused("fleet", "status", "NO")[1:], ("invalid", "name"))
    same(refused("fleet", "contest", "claim", "s", "--fleet", FLEET)[1], "invalid")
    same(refused("fleet", "contest", "ls", "--fleet", FLEET, "--cursor", "x")[1], "invalid")
    check(none not in [f["name"] for f in ask("fleet", "status")["fleets"]], "looking creates nothing")


@case("a fleet is removed when nobody is left in it")
def removed():
    holder = Holder("last")
    same(refused("fleet", "rm", FLEET)[1], "lease_held")
    holder.end()
    same(ask("fleet", "rm", FLEET), {"name": FLEET, "removed": True})
    same(refused("fleet", "status", FLEET)[1], "not_found")


tap.main()
