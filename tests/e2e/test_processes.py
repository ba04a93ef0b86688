#!/usr/bin/env -S python3 -B
"""Processes through the program: the page about them, a whole life, and what goes wrong."""

import json
import os
import pathlib
import subprocess
import time

import tap
from tap import answer, belay, case, same

TYPES = json.dumps([
    {"name": "line"},
    {"name": "wakes", "semantics": {"wake": {"input": "payload"}}},
    {"name": "execution.completed"},
])
SUCCESS = json.dumps({"type": "success", "value": 1})
_n = 0


def store():
    """A URL that nobody has used yet."""
    global _n
    _n += 1
    return f"sqlite:{pathlib.Path(f'store{_n}.db').absolute()}"


def ask(url, *words):
    return json.loads(answer("--store", url, "--json", *words))


def refused(url, *words):
    ran = belay(*words, "--store", url, "--json")
    same(ran.stdout, b"")
    return ran.returncode, json.loads(ran.stderr)["error"]["code"]


def check(held, what):
    if not held:
        raise AssertionError(what)


def items(url, *words):
    return ask(url, *words)["items"]


def register(url, name="p", *words):
    return ask(url, "process", "register", name, "--event-types", TYPES, *words)


@case("the page about processes runs as it is written")
def page():
    text = (tap.SOURCE / "docs/processes.md").read_text()
    script = text.split("```sh\n", 1)[1].split("```", 1)[0]
    env = dict(os.environ, PATH=f"{tap.BUILD}:{os.environ['PATH']}")
    ran = subprocess.run(["sh", "-eu", "-c", script], env=env, stdout=subprocess.PIPE, text=True,
                         timeout=60)
    same(ran.returncode, 0)
    out = ran.stdout
    for part in ["process:build-17:event:2:wake", "consumed", "it did not complete",
                 "process.failed", "registered", "ended"]:
        check(part in out, part)


@case("a life: registered, leased, told of, woken, completed, removed")
def life():
    url = store()
    check(register(url)["created"], "created")
    check(not register(url)["created"], "registered before")
    lease = ask(url, "process", "lease", "p", "--owner", "me")
    same(lease["fence"], 1)
    same(ask(url, "process", "append", "p", "--type", "line", "--payload", "1", "--key", "k",
             "--with-lease", lease["handle"])["fence"], 1)
    check(ask(url, "process", "append", "p", "--type", "line", "--payload", "1", "--key",
                  "k")["replayed"], "replayed")
    woken = ask(url, "process", "append", "p", "--type", "wakes", "--payload", '"up"',
                "--wake-target", "s", "--wake-frame", "f")
    same(woken["wake"]["target"], {"session_id": "s", "frame_id": "f"})
    same([b["source_key"] for b in items(url, "queue", "ls", "s")], ["process:p:event:2:wake"])
    same(ask(url, "process", "ack", "p", "2"), {"acknowledged": True})
    same(items(url, "queue", "ls", "s"), [])
    same(ask(url, "process", "external-ref", "p", "--ref", '{"backend":"b","id":"i"}')
         ["external_ref"], {"backend": "b", "id": "i"})
    same(ask(url, "process", "cancel", "p", "--reason", "enough")["sequence"], 3)
    same(ask(url, "process", "renew", lease["handle"], "--lease", "1h")["fence"], 1)
    same(ask(url, "process", "complete", "p", "--result", SUCCESS, "--with-lease",
             lease["handle"])["status"], "completed")
    same(ask(url, "process", "release", lease["handle"])["released"], False)
    same(ask(url, "process", "await", "p")["await_output"], {"type": "success", "value": 1})
    same([e["sequence"] for e in items(url, "process", "events", "p", "--tail", "2")], [3, 4])
    same([p["process_id"] for p in items(url, "process", "ls", "--status", "completed")], ["p"])
    made = ask(url, "process", "show", "p")["created_at_ms"]
    same([p["process_id"] for p in items(url, "process", "ls", "--created-from", str(made))], ["p"])
    same(items(url, "process", "ls", "--created-to", str(made - 1)), [])
    same(ask(url, "process", "delete", "p"), {"deleted": True})
    same([c["change"] for c in items(url, "process", "changes")],
         ["registered", "external_ref", "cancel_requested", "ended", "deleted"])
    check(ask(url, "check")["ok"], "check")


@case("a wake's target is a session, or a scope in its text form")
def targets():
    url = store()
    register(url, "w")
    for target, want in (("chat", ["chat"]), ("session:chat", ["chat"]),
                         ("session:chat/frame:f", ["chat", "f"]),
                         ("session:session:chat", ["session:chat"])):
        woken = ask(url, "process", "append", "w", "--type", "wakes", "--payload", '"up"',
                    "--wake-target", target)["wake"]["target"]
        same([v for v in (woken["session_id"], woken.get("frame_id")) if v], want)
    same(len(items(url, "queue", "ls", "chat")), 3)
    for target in ("session:", "session:a/frame:", "session:a/other"):
        same(refused(url, "process", "append", "w", "--type", "wakes", "--payload", '"up"',
                     "--wake-target", target), (2, "invalid"))


@case("grants move, are listed and forgotten")
def grants():
    url = store()
    for name in "pq":
        register(url, name)
        ask(url, "process", "grant", name, "--session", "s", "--label", name.upper())
    ask(url, "process", "transfer", "p", "q", "--session", "s", "--to", "t", "--to-frame", "f")
    same([g["label"] for g in items(url, "process", "grants", "--session", "t", "--frame", "f")],
         ["P", "Q"])
    same([g["frame_id"] for g in items(url, "process", "grants", "--process", "p")], ["f"])
    same(refused(url, "process", "transfer", "p", "--session", "s", "--to", "t"),
         (3, "not_found"))
    same(ask(url, "process", "revoke", "p", "--session", "t")["revoked"], False)
    report = ask(url, "process", "forget-session", "t", "--cancel", "--reason", "gone")
    same((report["revoked_handle_count"], report["cancel_process_ids"]), (2, ["p", "q"]))
    same([e["payload"] for e in items(url, "process", "events", "q")], [{"reason": "gone"}])


@case("what is wrong has its code and its exit status")
def wrong():
    url = store()
    register(url)
    lease = ask(url, "process", "lease", "p", "--owner", "me")["handle"]
    event = ("process", "append", "p", "--payload", "{}", "--type")
    end = ("process", "complete", "p", "--result", SUCCESS)
    for words, want in [
            (("process", "show", "q"), (3, "not_found")),
            (("process", "register", "p"), (4, "registration_conflict")),
            ((*event, "other"), (2, "invalid")),
            ((*event, "wakes"), (2, "invalid")),
            (("process", "lease", "p", "--owner", "you"), (4, "lease_held")),
            (end, (2, "invalid")),
            ((*end, "--authority", "owner"), (4, "lease_held")),
            ((*end, "--with-lease", "prl:nonsense"), (2, "bad_handle")),
            (("process", "await", "p", "--timeout", "10ms"), (5, "timeout")),
            (("process", "delete", "p"), (4, "wrong_state")),
    ]:
        same(refused(url, *words), want)
    ask(url, "process", "lease", "p", "--owner", "me")  # the one before is dead
    same(refused(url, *end, "--with-lease", lease), (4, "lease_lost"))
    same(belay("process", "await", "p", "--timeout", "10ms", "--store", url).returncode, 5)
    ask(url, "process", "complete", "p", "--authority", "operator", "--result",
        '{"type":"cancelled","message":"m"}')
    same(belay("process", "await", "p", "--store", url).returncode, 1)


@case("events are followed as they come, until the process has ended")
def followed():
    url = store()
    register(url)
    with subprocess.Popen([tap.BUILD / "belay", "--store", url, "--output", "jsonl", "process",
                           "events", "p", "-f"], stdout=subprocess.PIPE, text=True) as follower:
        time.sleep(0.2)
        ask(url, "process", "append", "p", "--type", "line", "--payload", "1")
        same(json.loads(follower.stdout.readline())["event_type"], "line")
        ask(url, "process", "complete", "p", "--authority", "owner", "--result", SUCCESS)
        same(json.loads(follower.stdout.readline())["event_type"], "process.completed")
        same(follower.wait(timeout=10), 0)


@case("what is followed ends at its limit")
def limited():
    url = store()
    register(url)
    register(url, "other")
    for i in range(3):
        ask(url, "process", "append", "p", "--type", "line", "--payload", str(i))
    for limit in ("1", "2"):
        for words in (["events", "p"], ["events", "p", "-f"], ["changes", "-f"]):
            run = belay("process", *words, "--limit", limit, "--output", "jsonl", "--store", url)
            same((run.returncode, len(run.stdout.splitlines())), (0, int(limit)))


@case("an execution of a process ends in its log")
def executions():
    url = store()
    same(refused(url, "submit", "--lane", "l", "--process", "p"), (3, "not_found"))
    register(url)
    same(refused(url, "submit", "--lane", "l", "--process", "p", "--process-event", "no"),
         (2, "invalid"))
    ask(url, "submit", "--lane", "l", "--process", "p", "--", "true")
    same(belay("work", "--lane", "l", "--drain", "--store", url).returncode, 0)
    told = items(url, "process", "events", "p")
    same([(e["event_type"], e["payload"]["outcome"]) for e in told],
         [("execution.completed", "success")])


tap.main()
