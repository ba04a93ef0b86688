#!/usr/bin/env -S python3 -B
"""Executions through the program: submitted, claimed, worked on, looked at, followed."""

import base64
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import tap
from tap import BELAY, answer, belay, case, same

_n = 0


def store():
    """A URL that nobody has used yet."""
    global _n
    _n += 1
    return f"sqlite:{pathlib.Path(f'executions{_n}.db').absolute()}"


def ask(url, *words, **options):
    return json.loads(answer(*words, "--store", url, "--json", **options))


def told(url, *words, **options):
    """Exit status and answer of a command whose answer has a status of its own."""
    ran = belay(*words, "--store", url, "--json", **options)
    same(ran.stderr, b"")
    return ran.returncode, json.loads(ran.stdout)


def refused(url, *words, **options):
    """Exit status, code and reason of a command that must fail."""
    ran = belay(*words, "--store", url, "--json", **options)
    same(ran.stdout, b"")
    error = json.loads(ran.stderr)["error"]
    return ran.returncode, error["code"], error["detail"].get("reason")


def piped(content):
    """Options of a run that reads this from its standard input."""
    return {"stdin": None, "input": content if isinstance(content, bytes) else content.encode()}


def submit(url, *words, lane="l"):
    """The id, as a script gets it."""
    return answer("submit", "--lane", lane, *words[:_dashes(words)], "--store", url,
                  *words[_dashes(words):]).strip()


def _dashes(words):
    return words.index("--") if "--" in words else len(words)


def claim(url, *words, lane="l", worker="w"):
    """The one claim that is there."""
    claims = ask(url, "claim", "--lane", lane, "--worker", worker, *words)["claims"]
    same(len(claims), 1)
    return claims[0]


def started(*words, **options):
    """The program in the background."""
    return subprocess.Popen([BELAY, *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def awaited(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


# --- a life ---


@case("an execution is submitted, claimed, told about and completed")
def _():
    url = store()
    whole = ask(url, "submit", "--lane", "l", "--kind", "k", "--payload", '{"b": 1.50}',
                "--priority", "7", "--tag", "team=red", "--require", "gpu", "--require", "eu",
                "--retries", "2", "--backoff", "exp:1s..5s", "--retryable", "timeout",
                "--deadline", "1h", "--attempt-timeout", "1m", "--max-reclaims", "3",
                "--retention", "1d", "--key", "key")
    same((whole["state"], whole["duplicate"], whole["namespace"]), ("waiting", False, "default"))
    same((whole["kind"], whole["priority"], whole["tags"]), ("k", 7, {"team": "red"}))
    same(whole["requires"], ["eu", "gpu"])
    same((whole["attempt"], whole["attempts"], whole["fence"], whole["worker"]),
         (None, 0, 0, None))
    same(whole["vector"], {"phase": "runnable", "ownership": "unowned",
                           "eligibility": "eligible_now",
                           "blocking_reason": "waiting_for_worker", "outcome": "none",
                           "attempt_state": "pending_first_attempt"})
    same(whole["policy"], {"attempt_timeout_ms": 60000, "deadline_ms": 3600000,
                           "max_reclaims": 3, "retention_ms": 86400000,
                           "retry": {"max_retries": 2, "retryable": ["timeout"],
                                     "backoff": {"type": "exponential",
                                                 "max_delay_ms": 5000}}})
    identity = whole["id"]
    assert identity.startswith("exe_")
    same(ask(url, "why", identity)["reason"], "waiting_for_worker")
    same(ask(url, "claim", "--lane", "l", "--worker", "w")["claims"], [])

    held = claim(url, "--capability", "gpu", "--capability", "eu", "--lease", "1m")
    same((held["execution"], held["lane"], held["kind"], held["execution_kind"]),
         (identity, "l", "fresh", "k"))
    same((held["attempt"], held["attempt_type"], held["fence"]), (0, "initial", 1))
    same((held["payload"], held["tags"]), ({"b": 1.5}, {"team": "red"}))
    assert held["handle"].startswith("blh1_")
    handle = ("--handle", held["handle"])
    renewed = ask(url, "renew", *handle, "--lease", "2m")
    same(sorted(renewed), ["fence", "lease_expires_at_ms"])
    assert renewed["lease_expires_at_ms"] > held["lease_expires_at_ms"]
    same(ask(url, "progress", *handle, "--percent", "40", "--message", "half"), {"told": True})
    same(ask(url, "frame", *handle, "--data", "a line\n"), {"seq": 1, "frame_count": 1})

    seen = ask(url, "show", identity)
    same((seen["state"], seen["worker"], seen["fence"]), ("active", "w", 1))
    same((seen["progress"]["percent"], seen["progress"]["message"]), (40, "half"))
    same(refused(url, "result", identity), (4, "wrong_state", "not_terminal"))
    same(ask(url, "complete", *handle, "--result", '{"x": [1, 2]}'),
         {"outcome": "success", "replayed": False})
    same(ask(url, "complete", *handle, "--result", '{"x": [1, 2]}')["replayed"], True)
    same(answer("result", identity, "--store", url), '{"x":[1,2]}\n')
    same(told(url, "result", identity),
         (0, {"id": identity, "state": "completed", "result": {"x": [1, 2]}}))
    same(ask(url, "show", identity)["vector"]["outcome"], "success")
    same(refused(url, "renew", *handle)[:2], (4, "lease_lost"))
    same(ask(url, "check")["findings"], [])


@case("show has the trace context of who submitted it, if there is one")
def _():
    url = store()
    traced = submit(url, "--trace-parent", "00-1-2-01", "--trace-state", "a=b")
    half, none = submit(url, "--trace-parent", "00-1-2-01"), submit(url)

    def seen(execution):
        whole = ask(url, "show", execution)
        return [whole[key] for key in ("traceparent", "tracestate") if key in whole]

    same((seen(traced), seen(half), seen(none)), (["00-1-2-01", "a=b"], ["00-1-2-01"], []))
    held = claim(url)
    same((held["traceparent"], held["tracestate"]), ("00-1-2-01", "a=b"))


@case("what stands behind -- is the command, whatever it looks like")
def _():
    url = store()
    submit(url, "--", "printf", "%s", "", "--lane", "--", "ü")
    same(claim(url)["payload"], {"argv": ["printf", "%s", "", "--lane", "--", "ü"]})
    ran = belay("submit", "--lane", "l", "--payload", "1", "--store", url, "--", "echo")
    same((ran.returncode, ran.stdout), (2, b""))


@case("submit prints the id, and with a key the same one again")
def _():
    url = store()
    first = submit(url, "--key", "k", "--payload", "1")
    same(submit(url, "--key", "k", "--payload", "1"), first)
    same(ask(url, "submit", "--lane", "l", "--key", "k", "--payload", "1")["duplicate"], True)
    same(refused(url, "submit", "--lane", "l", "--key", "k", "--payload", "2")[:2],
         (4, "key_conflict"))
    same(answer("ls", "-q", "--store", url).split(), [first])


@case("a zero is what it says, or refused, and never taken for nothing given")
def _():
    url = store()
    for words in (("--deadline", "0s"), ("--attempt-timeout", "0s"), ("--key-window", "0s"),
                  ("--key-window", "0s", "--key", "k"), ("--key-window", "1h"),
                  ("--backoff", "exp:0ms..0ms"), ("--backoff", "exp:1s..0s"),
                  ("--backoff", "exp:10s..1s"), ("--retryable", "permanent"),
                  ("--retryable", "timeout", "--retryable", "cancelled")):
        same(refused(url, "submit", "--lane", "l", *words)[:2], (2, "invalid"))
    for item in ({"deadline_ms": 0}, {"attempt_timeout_ms": 0}, {"key_window_ms": 0},
                 {"key": "k", "key_window_ms": 0}, {"key_window_ms": 1},
                 {"retry": {"retryable": ["permanent"]}},
                 {"retry": {"backoff": {"type": "exponential", "initial_delay_ms": 0}}},
                 {"retry": {"backoff": {"type": "exponential", "initial_delay_ms": 2,
                                        "max_delay_ms": 1}}}):
        same(refused(url, "submit-batch", "-", **piped(json.dumps([{"lane": "l", **item}])))[:2],
             (2, "invalid"))
    same(refused(url, "submit", "--lane", "l", "--delay", "1h", "--run-at", "5"),
         (2, "invalid", "run_at"))
    same(refused(url, "submit-batch", "-", **piped(json.dumps(
        [{"lane": "l", "delay_ms": 1, "run_at_ms": 1}])))[:2], (2, "invalid"))
    ran = belay("submit", "--lane", "l", "--deadline", "0s", "--store", url)
    assert b"--deadline: must be above 0; leave it out for none" in ran.stderr, ran.stderr
    same(ask(url, "ls")["items"], [])

    policy = {"retention_ms": 0, "retry": {"max_retries": 3,
                                           "backoff": {"type": "fixed", "delay_ms": 0}}}
    said = ask(url, "submit", "--lane", "l", "--backoff", "fixed:0ms", "--retention", "0s")
    same(said["policy"], policy)
    batch = [{"lane": "l", "retention_ms": 0,
              "retry": {"backoff": {"type": "fixed", "delay_ms": 0}}}]
    twin = ask(url, "submit-batch", "-", **piped(json.dumps(batch)))["items"][0]["id"]
    same(ask(url, "show", twin)["policy"], policy)
    answer("cancel", twin, "--store", url)
    for attempt in range(4):  # again at once, each time
        held = claim(url)
        same((held["execution"], held["attempt"]), (said["id"], attempt))
        answer("fail", "--handle", held["handle"], "--class", "transient", "--message", "m",
               "--store", url)
    same(ask(url, "timers", "--once")["purged"], 2)
    same(refused(url, "show", said["id"])[:2], (3, "not_found"))


@case("many are submitted at once, from a list or one a line, or none of them")
def _():
    url = store()
    lines = '{"lane":"q","tags":{"a":"1"}}\n\n{"lane":"q","payload_base64":"AP8="}\n'
    ids = answer("submit-batch", "-", "--store", url, **piped(lines)).split()
    same(len(ids), 2)
    pathlib.Path("items.json").write_text(json.dumps({"items": [
        {"lane": "q", "payload": n, "retry": {"backoff": {"type": "fixed", "delay_ms": 5}}}
        for n in range(1000)]}), encoding="utf-8")
    made = ask(url, "submit-batch", "items.json")["items"]
    same((len(made), made[0]["state"], made[0]["duplicate"]), (1000, "waiting", False))
    same(refused(url, "submit-batch", "-", **piped('[{"lane":"q"},{"lane":"q","x":1}]')),
         (2, "invalid", "field"))
    same(refused(url, "submit-batch", "-", **piped("[]"))[0], 2)
    same(refused(url, "submit-batch", "-", **piped(json.dumps([{"lane": "q"}] * 1001)))[0], 2)
    same(ask(url, "stats")["executions"]["waiting"], 1002)
    claims = ask(url, "claim", "--lane", "q", "--worker", "w", "--max", "1000")["claims"]
    same([c["execution"] for c in claims[:2]], ids)
    same(base64.b64decode(claims[1]["payload_base64"]), b"\0\xff")
    same([c["payload"] for c in claims[2:5]], [0, 1, 2])
    done = "\n".join(json.dumps({"handle": c["handle"], "result": n})
                     for n, c in enumerate(claims[:3]))
    same([i["outcome"] for i in ask(url, "complete-batch", "-", **piped(done))["items"]],
         ["success"] * 3)
    answer("revoke", claims[3]["execution"], "--store", url)
    mixed = [{"handle": claims[3]["handle"]}, {"handle": claims[4]["handle"]}]
    status, items = told(url, "complete-batch", "-", **piped(json.dumps(mixed)))
    same((status, [i["outcome"] for i in items["items"]]), (4, [None, "success"]))
    same(items["items"][0]["error"]["code"], "lease_lost")


@case("of many completions one whose handle cannot be read fails alone")
def _():
    url = store()
    ids = [submit(url) for _ in range(2)]
    held = ask(url, "claim", "--lane", "l", "--worker", "w", "--max", "2")["claims"]
    good = [{"handle": c["handle"], "result": 1} for c in held]
    batch = [{"handle": "nonsense"}, good[0], {"handle": good[1]["handle"][:-4]}, good[1]]
    status, said = told(url, "complete-batch", "-", **piped(json.dumps(batch)))
    same((status, [i["outcome"] for i in said["items"]]), (2, [None, "success"] * 2))
    same([i["error"] and i["error"]["code"] for i in said["items"]], ["bad_handle", None] * 2)
    same(said["items"][0]["error"]["reason"], "text")
    same([ask(url, "show", each)["state"] for each in ids], ["completed"] * 2)
    same(refused(url, "complete-batch", "-", **piped(json.dumps(batch[:1]))),
         (2, "bad_handle", "text"))
    submit(url)
    last = {"handle": claim(url)["handle"]}
    for wrong in (1, {}, {"handle": 1}, {**last, "x": 1}):  # no completion at all
        same(refused(url, "complete-batch", "-", **piped(json.dumps([last, wrong])))[:2],
             (2, "invalid"))
    same(ask(url, "complete", "--handle", last["handle"])["replayed"], False)


# --- failures ---


@case("a failure is tried again as its class and policy say")
def _():
    url = store()
    identity = submit(url, "--retries", "1", "--backoff", "fixed:0ms")
    lost = claim(url)["handle"]
    said = ask(url, "fail", "--handle", lost, "--class", "transient", "--message", "oops",
               "--detail", "network")
    same((said["outcome"], said["replayed"]), ("retry_scheduled", False))
    assert said["delay_until_ms"] > 0
    same(refused(url, "complete", "--handle", lost)[:2], (4, "lease_lost"))
    second = claim(url, "--wait", "5s")
    same((second["attempt"], second["attempt_type"], second["fence"]), (1, "retry", 2))
    said = ask(url, "fail", "--handle", second["handle"], "--class", "permanent", "--message",
               "never")
    same((said["outcome"], said["delay_until_ms"]), ("terminal_failed", None))
    same(told(url, "result", identity),
         (1, {"id": identity, "state": "failed",
              "failure": {"class": "permanent", "message": "never"}}))
    ran = belay("result", identity, "--store", url)
    same((ran.returncode, ran.stderr), (1, b""))
    assert b"never" in ran.stdout
    same([(a["type"], a["end"], a["failure_class"])
          for a in ask(url, "attempts", identity)["items"]],
         [("initial", "ended_failure", "transient"), ("retry", "ended_failure", "permanent")])
    same([(a["previous_attempt_index"], a["retry_reason"])
          for a in ask(url, "attempts", identity)["items"]],
         [(None, None), (0, "transient: oops")])
    same(refused(url, "fail", "--handle", lost, "--class", "bad", "--message", "")[0], 2)


@case("work is delayed, given back, aborted and revoked")
def _():
    url = store()
    identity = submit(url)
    first = claim(url)
    until = ask(url, "delay", "--handle", first["handle"], "--for", "1h")["delay_until_ms"]
    assert until > time.time() * 1000 + 3500000
    same(ask(url, "why", identity)["next_at_ms"], until)
    other = submit(url)
    held = claim(url)
    same(held["execution"], other)
    same(ask(url, "release", "--handle", held["handle"]), {"released": True})
    again = claim(url)
    same((again["execution"], again["attempt"], again["kind"]), (other, 0, "resumed"))
    same(ask(url, "revoke", other), {"id": other, "revoked": True})
    same(ask(url, "revoke", other), {"id": other, "revoked": False})
    same(refused(url, "renew", "--handle", again["handle"]), (4, "lease_lost", "revoked"))
    last = claim(url)
    same(last["kind"], "reclaimed")
    same(ask(url, "abort", "--handle", last["handle"], "--reason", "no need"),
         {"cancelled": True})
    same(ask(url, "show", other)["cancel"]["reason"], "no need")
    same(belay("delay", "--handle", "x", "--store", url).returncode, 2)


@case("operators cancel, replay, set priorities and tags")
def _():
    url = store()
    first, second = submit(url, "--tag", "a=1"), submit(url, "--tag", "a=1")
    same(ask(url, "priority", second, "9000"), {"id": second, "priority": 9000})
    same(refused(url, "priority", second, "9001")[0], 2)
    same(ask(url, "tag", second, "b=x=y", "--remove", "a"),
         {"id": second, "tags": {"a": None, "b": "x=y"}})
    same(ask(url, "show", second)["tags"], {"b": "x=y"})
    same(refused(url, "tag", second)[0], 2)
    same(refused(url, "tag", second, "novalue")[0], 2)
    same([e["id"] for e in ask(url, "ls", "--tag", "a=1")["items"]], [first])
    same([e["id"] for e in ask(url, "ls", "--state", "waiting")["items"]], [second, first])
    same(claim(url)["execution"], second)
    same(ask(url, "cancel", second, "--reason", "enough"), {"id": second, "state": "cancelled"})
    same(refused(url, "cancel", "exe_none")[:2], (3, "not_found"))
    same(ask(url, "replay", second), {"id": second, "replayed": True})
    same(refused(url, "replay", first)[:2], (4, "wrong_state"))
    same(ask(url, "show", second)["state"], "waiting")


@case("a scheduler grants, and only that worker claims it")
def _():
    url = store()
    identity = submit(url)
    grant = ask(url, "grant", "--lane", "l", "--worker", "ada", "--for", "30s")
    same((grant["execution"], grant["worker"], grant["kind"], grant["partition_key"]),
         (identity, "ada", "fresh", "default"))
    same(ask(url, "claim", "--lane", "l", "--worker", "bob")["claims"], [])
    same(refused(url, "claim", "--grant", grant["grant"], "--worker", "bob"),
         (4, "wrong_state", "worker"))
    got = ask(url, "claim", "--grant", grant["grant"], "--worker", "ada")["claims"][0]
    same(got["execution"], identity)
    same(ask(url, "grant", "--lane", "l", "--worker", "ada")["grant"], None)
    same(refused(url, "grant", "--worker", "ada")[0], 2)
    same(refused(url, "claim", "--worker", "ada")[0], 2)


@case("completing claims the next in the same breath")
def _():
    url = store()
    submit(url, "--payload", "1")
    second = submit(url, "--payload", "2")
    held = claim(url)
    done = ask(url, "complete", "--handle", held["handle"], "--claim-next",
               '{"lanes":["l"],"worker":"w"}')
    same([c["execution"] for c in done["claims"]], [second])
    same(refused(url, "complete", "--handle", done["claims"][0]["handle"], "--claim-next",
                 '{"lane":"l","worker":"w"}'), (2, "invalid", "field"))


# --- waiting and following ---


@case("wait ends when all have ended, and says how by its status")
def _():
    url = store()
    first, second = submit(url), submit(url)
    status, said = told(url, "wait", first, second, "--timeout", "50ms")
    same((status, [i["state"] for i in said["items"]]), (5, ["waiting"] * 2))
    same([i["timed_out"] for i in said["items"]], [True, True])
    waiting = started("wait", first, second, "--store", url, "--json")
    for held in ask(url, "claim", "--lane", "l", "--worker", "w", "--max", "2")["claims"]:
        answer("complete", "--handle", held["handle"], "--store", url)
    status, out, _ = awaited(waiting)
    same((status, [i["state"] for i in json.loads(out)["items"]]), (0, ["completed"] * 2))
    third = submit(url)
    answer("cancel", third, "--store", url)
    same(told(url, "wait", first, third)[0], 1)
    same(refused(url, "wait", first, "exe_none")[:2], (3, "not_found"))
    same(refused(url, "wait", submit(url), "exe_none")[:2], (3, "not_found"))  # at once
    same(answer("wait", first, "--store", url).splitlines()[1].split(), [first, "completed"])


@case("a claim waits for work and is woken by it")
def _():
    url = store()
    submit(url, lane="other")
    waiting = started("claim", "--lane", "l", "--worker", "w", "--wait", "30s", "--store", url,
                      "--json")
    identity = submit(url)
    status, out, _ = awaited(waiting)
    same((status, json.loads(out)["claims"][0]["execution"]), (0, identity))


@case("logs are what was written, where it was written to")
def _():
    url = store()
    identity = submit(url, "--retries", "1", "--backoff", "fixed:0ms")
    handle = claim(url)["handle"]
    at = ("--store", url, "--handle", handle)
    same(answer("frame", *at, "--data", "one\n"), "")
    same(belay("frame", *at, "--data", "-", **piped(b"\0\xff\n")).returncode, 0)
    answer("frame", *at, "--kind", "stderr", "--data", "two\n", "--seq", "5")
    same(ask(url, "frame", "--handle", handle, "--data", "two\n", "--seq", "5"),
         {"seq": 3, "frame_count": 3, "duplicate": True})
    answer("fail", *at, "--class", "timeout", "--message", "slow")
    answer("frame", "--store", url, "--handle", claim(url, "--wait", "5s")["handle"], "--data",
           "three\n")
    ran = belay("logs", identity, "--store", url)
    same((ran.returncode, ran.stdout, ran.stderr), (0, b"one\n\0\xff\nthree\n", b"two\n"))
    same(belay("logs", identity, "--attempt", "0", "--kind", "stderr", "--store",
               url).stderr, b"two\n")
    page = ask(url, "logs", identity, "--attempt", "0", "--limit", "2")
    same([f.get("data") for f in page["items"]], ["one\n", None])
    same(page["items"][1]["data_base64"], base64.b64encode(b"\0\xff\n").decode())
    same((page["closed"], page["frame_count"], page["next_cursor"]), (True, 3, "2"))
    rest = ask(url, "logs", identity, "--attempt", "0", "--after", page["next_cursor"])
    same([(f["seq"], f["kind"], f["caller_seq"]) for f in rest["items"]], [(3, "stderr", 5)])
    same([f for f in page["items"] if "caller_seq" in f], [])
    same(refused(url, "logs", "exe_none")[:2], (3, "not_found"))


@case("logs say that some of it is gone, that an attempt is none, and keep to a limit")
def _():
    url = store()
    identity = submit(url)
    same(ask(url, "logs", identity, "--attempt", "0")["items"], [])  # it will begin
    same(refused(url, "logs", identity, "--attempt", "1")[:3], (3, "not_found", "attempt"))
    handle = claim(url)["handle"]
    for n in range(5):
        answer("frame", "--handle", handle, "--data", f"{n}\n", "--store", url)
        answer("frame", "--handle", handle, "--data", "aside", "--kind", "event", "--store", url)
    same(ask(url, "logs", identity)["trimmed"], False)
    same(answer("logs", identity, "--limit", "2", "--kind", "stdout", "--store", url), "0\n1\n")
    same(answer("logs", "-f", identity, "--limit", "3", "--kind", "stdout", "--store", url),
         "0\n1\n2\n")
    with sqlite3.connect(url.removeprefix("sqlite:")) as file:
        same(file.execute("DELETE FROM belay_log WHERE stream LIKE ? AND seq <= 4",
                          (f"%{identity}%",)).rowcount, 4)
    file.close()
    ran = belay("logs", identity, "--kind", "stdout", "--store", url)
    same((ran.returncode, ran.stdout, ran.stderr),
         (0, b"2\n3\n4\n", b"belay: logs: some of it is not kept any more\n"))
    same(answer("logs", identity, "--after", "4", "--kind", "stdout", "--store", url),
         "2\n3\n4\n")
    same(belay("logs", identity, "-q", "--store", url).stderr, b"")
    same(ask(url, "logs", identity)["trimmed"], True)
    answer("complete", "--handle", handle, "--store", url)
    for attempt in ("1", "7"):
        same(refused(url, "logs", identity, "--attempt", attempt)[:2], (3, "not_found"))
        same(belay("logs", "-f", identity, "--attempt", attempt, "--store", url).returncode, 3)
    for limit in (1, 2):
        same(len(answer("events", "-f", "--limit", str(limit), "--output", "jsonl", "--store",
                        url).splitlines()), limit)


@case("logs that are followed go on through the attempts, and end with the execution")
def _():
    url = store()
    identity = submit(url, "--retries", "1", "--backoff", "fixed:100ms")
    followed = started("logs", "-f", identity, "--store", url)
    lines = started("logs", "-f", identity, "--store", url, "--json")
    first = claim(url)["handle"]
    answer("frame", "--store", url, "--handle", first, "--data", "one\n")
    same(followed.stdout.readline(), b"one\n")
    same(json.loads(lines.stdout.readline())["data"], "one\n")
    answer("fail", "--store", url, "--handle", first, "--class", "transient", "--message", "x")
    second = claim(url, "--wait", "20s")["handle"]
    answer("frame", "--store", url, "--handle", second, "--data", "two\n")
    same(followed.stdout.readline(), b"two\n")
    answer("complete", "--store", url, "--handle", second)
    same(awaited(followed), (0, b"", b""))
    status, out, err = awaited(lines)
    same((status, json.loads(out)["attempt"], err), (0, 1, b""))


@case("events are read by cursor, filtered, and followed")
def _():
    url = store()
    first, second = submit(url, "--tag", "team=red"), submit(url)
    for held in ask(url, "claim", "--lane", "l", "--worker", "w", "--max", "2")["claims"]:
        answer("complete", "--handle", held["handle"], "--result", "7", "--store", url)
    seen = ask(url, "events")
    same([(e["type"], e["execution"]) for e in seen["items"]],
         [("acquired", first), ("acquired", second), ("completion", first),
          ("completion", second)])
    last = seen["items"][3]
    same((last["outcome"], last["payload"], last["fence"]), ("success", 7, 1))
    assert last["produced_at_ms"] > 0 and last["cursor"]
    half = ask(url, "events", "--limit", "2")
    same(ask(url, "events", "--after", half["next_cursor"])["items"], seen["items"][2:])
    same(ask(url, "events", "--after", seen["cursor"])["items"], [])
    same([e["execution"] for e in ask(url, "events", "--type", "completion", "--tag",
                                      "team=red")["items"]], [first])
    same(len(ask(url, "events", "--execution", second)["items"]), 2)

    followed = started("events", "-f", "--after", seen["cursor"], "--json", "--store", url)
    third = submit(url)
    same(claim(url)["execution"], third)
    event = json.loads(followed.stdout.readline())
    same((event["type"], event["execution"]), ("acquired", third))
    answer("cancel", third, "--store", url)
    same(json.loads(followed.stdout.readline())["outcome"], "cancelled")
    followed.send_signal(signal.SIGINT)
    same(awaited(followed), (0, b"", b""))
    lines = belay("events", "--store", url).stdout.decode().splitlines()
    same(lines[0].split()[:3], ["produced_at_ms", "type", "execution"])
    same(len(lines), 7)


@case("an event tells a result that is not kept any more from one that never was")
def _():
    url = store()
    long, none = submit(url), submit(url)
    result = json.dumps("x" * 5000)
    answer("complete", "--handle", claim(url)["handle"], "--result", result, "--store", url)
    answer("complete", "--handle", claim(url)["handle"], "--store", url)

    def ended(execution):
        event, = ask(url, "events", "--type", "completion", "--execution", execution)["items"]
        return event["payload"], event.get("payload_gone")

    same((ended(long), ended(none)), (("x" * 5000, None), (None, None)))
    for execution in long, none:
        answer("replay", execution, "--store", url)
    same((ended(long), ended(none)), ((None, True), (None, None)))


@case("timers do what is due once, or until they are told to stop")
def _():
    url = store()
    identity = submit(url, "--delay", "1ms")
    submit(url, "--deadline", "1ms")
    promoted = expired = 0
    while promoted < 1 or expired < 1:
        done = ask(url, "timers", "--once")
        promoted, expired = promoted + done["promoted"], expired + done["expired"]
    same((promoted, expired, done["busy"]), (1, 1, False))
    same(ask(url, "show", identity)["state"], "waiting")
    late = submit(url, "--delay", "200ms", "--tag", "mine=1")
    running = started("timers", "--store", url)
    while ask(url, "show", late)["state"] != "waiting":
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    same(awaited(running), (0, b"stopped  true\n", b""))
    same(refused(url, "timers", "--once", "--only-tag", "mine")[0], 2)


@case("timers serve every namespace of a store, or one")
def _():
    url = store()
    for namespace in ("default", "one", "two"):
        submit(url, "--delay", "1ms", "--namespace", namespace)
    time.sleep(0.01)
    same(ask(url, "timers", "--once", "--only-namespace", "two")["promoted"], 1)
    same(ask(url, "timers", "--once", "--only-namespace", "none")["promoted"], 0)
    same(ask(url, "timers", "--once")["promoted"], 2)


# --- looking ---


@case("lists have pages, tables and ids")
def _():
    url = store()
    ids = [submit(url, lane=f"lane{n % 2}") for n in range(5)]
    page = ask(url, "ls", "--limit", "3")
    same([e["id"] for e in page["items"]], ids[:1:-1])
    rest = ask(url, "ls", "--limit", "3", "--cursor", page["next_cursor"])
    same(([e["id"] for e in rest["items"]], rest["next_cursor"]), (ids[1::-1], None))
    ran = belay("ls", "--limit", "1", "--store", url)
    same(ran.stdout.decode().splitlines()[0].split(),
         ["id", "lane", "kind", "state", "priority", "attempts", "worker", "age"])
    assert b"go on with --cursor " in ran.stderr
    same(len(ask(url, "ls", "--lane", "lane1")["items"]), 2)
    lanes = ask(url, "lane", "ls")["items"]
    same([(lane["lane"], lane["waiting"], lane["routes"]) for lane in lanes],
         [("lane0", 3, 1), ("lane1", 2, 1)])
    stats = ask(url, "stats")
    same((stats["executions"]["waiting"], stats["lanes"], stats["durability"]),
         (5, 2, "durable"))
    text = answer("show", ids[0], "--store", url)
    assert text.startswith("id ") and "vector.phase" in text
    same(answer("show", ids[0], "-q", "--store", url), "waiting\n")
    same(refused(url, "show", "exe_none")[:2], (3, "not_found"))
    same(refused(url, "renew", "--handle", "nonsense")[:2], (2, "bad_handle"))


@case("a list for people and scripts goes on to its limit where few match")
def _():
    url = store()
    rare = [submit(url, lane="rare") for _ in range(3)]
    for _ in range(2):
        answer("submit-batch", "-", "-q", "--store", url,
               **piped(json.dumps([{"lane": "common"}] * 1000)))
    rare += [submit(url, lane="rare") for _ in range(2)]
    newest = rare[::-1]
    same(answer("ls", "--lane", "rare", "-q", "--store", url).split(), newest)
    same(len(answer("ls", "--lane", "rare", "--store", url).splitlines()), 6)
    same([json.loads(line)["id"] for line in answer(
        "ls", "--lane", "rare", "--output", "jsonl", "--store", url).splitlines()], newest)
    ran = belay("ls", "--lane", "rare", "--limit", "4", "--store", url)
    same([line.split()[0] for line in ran.stdout.decode().splitlines()[1:]], newest[:4])
    cursor = ran.stderr.split()[-1].decode()
    same(answer("ls", "--lane", "rare", "-q", "--cursor", cursor, "--store", url).split(),
         newest[4:])
    found, cursor, pages = [], (), 0
    while cursor is not None:  # programs get pages, which may be short
        page = ask(url, "ls", "--lane", "rare", *cursor)
        found += [e["id"] for e in page["items"]]
        cursor = page["next_cursor"] and ("--cursor", page["next_cursor"])
        pages += 1
    same((found, pages), (newest, 3))


@case("a list says nothing about what it does not look up")
def _():
    url = store()
    failed = submit(url)
    held = claim(url)
    answer("progress", "--percent", "5", "--handle", held["handle"], "--store", url)
    answer("fail", "--class", "permanent", "--message", "m", "--handle", held["handle"],
           "--store", url)
    item, = ask(url, "ls")["items"]
    same((item["id"], "failure" in item, "progress" in item), (failed, False, False))
    whole = ask(url, "show", failed)
    same((whole["failure"]["class"], whole["progress"]["percent"]), ("permanent", 5))


@case("a lost lease is taken over after the grace, and its holder is told")
def _():
    url = store() + "?grace=0ms"
    identity = submit(url)
    first = claim(url, "--lease", "0ms")
    second = claim(url, worker="other")
    same((second["execution"], second["kind"], second["fence"]), (identity, "reclaimed", 2))
    for verb in (("renew",), ("complete",), ("progress", "--percent", "1"), ("release",),
                 ("frame", "--data", "x"), ("delay", "--for", "1s"), ("abort",),
                 ("fail", "--class", "transient", "--message", "m")):
        same(refused(url, *verb, "--handle", first["handle"]),
             (4, "lease_lost", "superseded"))
    same(ask(url, "show", identity)["reclaims"], 1)


# --- inside of a job ---


class Worker:
    """The other side of a job's socket: answers every line with the next answer."""

    def __init__(self, *answers):
        self.path = str(pathlib.Path("socket").absolute())
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.heard = []
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen(1)
        self.thread = threading.Thread(target=self._serve, args=(answers,))
        self.thread.start()

    def _serve(self, answers):
        for said in answers:
            peer, _ = self.listening.accept()
            with peer, peer.makefile("rb") as lines:
                self.heard.append(json.loads(lines.readline()))
                peer.sendall(said)

    def end(self):
        self.thread.join(60)
        self.listening.close()


@case("a job's verbs go to its socket, and to a store only when one is named")
def _():
    url = store()
    worker = Worker(b'{"ok":true,"answer":{"told":true}}\n',
                    b'{"ok":true,"answer":{"seq":1,"frame_count":1}}\n',
                    b'{"ok":false,"error":{"code":"lease_lost","reason":"revoked",'
                    b'"message":"it was taken"}}\n', b"nonsense\n", b"")
    env = {"BELAY_SOCKET": worker.path, "BELAY_HANDLE": "blh1_x",
           "BELAY_STORE": "sqlite:/nowhere/store.db"}
    same(json.loads(answer("progress", "--percent", "5", "--json", env=env)), {"told": True})
    answer("frame", "--data", "-", env=env, **piped(b"\xff"))
    same(worker.heard,
         [{"op": "progress", "args": {"handle": "blh1_x", "percent": 5}},
          {"op": "frame", "args": {"handle": "blh1_x", "kind": "stdout", "mode": "durable",
                                   "data_base64": "/w=="}}])
    ran = belay("renew", "--lease", "2s", "--json", env=env)
    same((ran.returncode, json.loads(ran.stderr)["error"]),
         (4, {"code": "lease_lost", "message": "renew: it was taken",
              "detail": {"reason": "revoked"}}))
    same(worker.heard[2]["args"]["lease"], 2000)
    same([belay("release", env=env).returncode for _ in range(2)], [69, 69])
    worker.end()
    same(belay("release", env=env).returncode, 69)
    identity = submit(url)
    handle = claim(url)["handle"]
    answer("complete", "--handle", handle, "--store", url, env=env)
    same(ask(url, "show", identity, env=env)["state"], "completed")


@case("a script in a worker uses them without knowing the store")
def _():
    url = store()
    identity = submit(url, "--", "sh", "-c",
                      '"$BELAY" progress --percent 50 && echo "[$BELAY_STORE]" && '
                      '"$BELAY" complete --result "{\\"n\\":1}"')
    ran = belay("work", "--lane", "l", "--drain", "--store", url, env={"BELAY": str(BELAY)})
    same(ran.returncode, 0)
    same(answer("result", identity, "--store", url), '{"n":1}\n')
    same(belay("logs", identity, "--store", url).stdout, b"[]\n")
    same(ask(url, "show", identity)["progress"]["percent"], 50)


tap.main()
