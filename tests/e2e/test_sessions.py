#!/usr/bin/env -S python3 -B
"""Inboxes, sessions and blobs through the program: a whole life, and what goes wrong."""

import hashlib
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import threading
import time

import tap
from tap import answer, belay, case, same

_n = 0


def store():
    """A URL that nobody has used yet."""
    global _n
    _n += 1
    return f"sqlite:{pathlib.Path(f'store{_n}.db').absolute()}"


def path_of(url):
    return url.removeprefix("sqlite:")


def ask(url, *words, **options):
    return json.loads(answer(*words, "--store", url, "--json", **options))


def refused(url, *words, **options):
    """Exit status and error of a command that must fail."""
    ran = belay(*words, "--store", url, "--json", **options)
    same(ran.stdout, b"")
    error = json.loads(ran.stderr)["error"]
    return ran.returncode, error["code"], error


def enqueue(url, *words, session="s", delivery="earliest_safe_boundary", slot="exclusive",
            **options):
    return ask(url, "queue", "enqueue", session, "--delivery", delivery, "--slot", slot,
               *words, **options)


def claim(url, *words, session="s", owner="o"):
    return ask(url, "queue", "claim", session, "--owner", owner, *words)


def piped(text):
    """Options of a run that reads this from its standard input."""
    return {"stdin": None, "input": text.encode()}


def commit(url, body, *words, session="s"):
    return ask(url, "session", "commit", session, *words, "--file", "-",
               **piped(json.dumps(body)))


def nodes(*ids):
    """A chain of nodes."""
    return [{"node_id": n, "parent_node_id": parent, "kind": "plugin", "plugin_type": "t",
             "body": {"n": n}} for parent, n in zip((None, *ids), ids)]


def seqs(found):
    return [batch["enqueue_seq"] for batch in found["items"]]


# --- inboxes ---


@case("a batch is enqueued, listed, claimed and completed")
def _():
    url = store()
    batch = enqueue(url, "--payload", '{"b": 1, "a": [1.50]}', "--payload", "null")
    same((batch["session_id"], batch["enqueue_seq"], batch["source_key"]), ("s", 1, None))
    same((batch["delivery_policy"], batch["slot_policy"], batch["merge_key"]),
         ("earliest_safe_boundary", "exclusive", "never"))
    same([item["payload"] for item in batch["items"]], [{"a": [1.5], "b": 1}, None])
    same(batch["items"][1]["item_id"], batch["batch_id"] + ":item:1")
    assert abs(batch["enqueued_at_ms"] / 1000 - time.time()) < 60
    same((batch["claim_id"], batch["owner_id"], batch["expires_at_ms"], batch["fence"]),
         (None, None, None, 0))
    same((batch["replayed"], batch["payload_mismatch"]), (False, False))

    got = claim(url, "--lease", "1m", owner="ada")
    same((got["claimed"], got["reason"], got["next_at_ms"]), (True, None, None))
    held = got["claim"]
    same((held["session_id"], held["owner_id"], held["claim_id"], held["fence"]),
         ("s", "ada", "qwc:1:1", 1))
    same(held["expires_at_ms"] - held["claimed_at_ms"], 60000)
    same(held["handle"], got["handle"])
    same((len(held["lease_token"]), len(held["lease_id"])), (64, 32))
    same([b["batch_id"] for b in held["batches"]], [batch["batch_id"]])
    same(held["batches"][0]["items"], batch["items"])

    listed = ask(url, "queue", "ls", "s")["items"]
    same((listed[0]["owner_id"], listed[0]["claim_id"]), ("ada", "qwc:1:1"))
    same(ask(url, "queue", "ls", "s", "--pending")["items"], [])

    done = ask(url, "queue", "complete", got["handle"])
    same((done["revision"], done["head_revision"], done["replayed"]), (1, 1, False))
    same(ask(url, "queue", "ls", "s"), {"items": [], "next_cursor": None})
    same(ask(url, "check")["findings"], [])


@case("for people there are tables, for scripts -q")
def _():
    url = store()
    words = ("--store", url, "queue")
    text = answer(*words, "enqueue", "s", "--delivery=earliest_safe_boundary",
                  "--slot=join", "--payload", "1")
    assert text.startswith("batch_id"), text
    quiet = answer(*words, "enqueue", "s", "--delivery=earliest_safe_boundary",
                   "--slot=join", "--payload", "2", "-q")
    assert quiet.startswith("qwb:") and len(quiet) == 69, quiet
    lines = answer(*words, "ls", "s").splitlines()
    same(lines[0].split(), ["enqueue_seq", "batch_id", "delivery_policy", "slot_policy",
                            "owner_id", "expires_at_ms", "source_key"])
    same(lines[2].split()[:2], ["2", quiet.strip()])
    same(answer(*words, "ls", "s", "-q").split()[1], quiet.strip())
    same(len(answer(*words, "ls", "s", "--output", "jsonl").splitlines()), 2)

    lines = answer(*words, "claim", "s", "--owner", "o", "--max", "9").splitlines()
    same(lines[0].split(), ["claimed", "true"])
    same(lines[5].split(), ["enqueue_seq", "batch_id", "source_key", "items"])
    same([line.split()[0] for line in lines[6:]], ["1", "2"])
    same(answer(*words, "claim", "s", "--owner", "o", "-q"), "")


@case("payloads are read from the line, from files and from standard input")
def _():
    url = store()
    pathlib.Path("payload.json").write_text('{"from": "@file"}\n', encoding="utf-8")
    batch = enqueue(url, "--payload", "1", "--payload", "@payload.json", "--payload", "-",
                    "--payload", '"@x"', **piped('["stdin"]'))
    same([item["payload"] for item in batch["items"]],
         [1, {"from": "@file"}, ["stdin"], "@x"])
    same(enqueue(url)["items"], [])
    status, code, error = refused(url, "queue", "enqueue", "s", "--slot=join",
                                  "--delivery=earliest_safe_boundary", "--payload", "{")
    same((status, code, error["detail"]["entity"]), (2, "invalid", "payload"))
    same(len(ask(url, "queue", "ls", "s")["items"]), 2)


@case("a source key gives the batch that is there, and says when payloads differ")
def _():
    url = store()
    first = enqueue(url, "--source-key", "k", "--payload", "1")
    again = enqueue(url, "--source-key", "k", "--payload", "1.0")
    same((again["batch_id"], again["replayed"]), (first["batch_id"], True))
    same(again["payload_mismatch"], True)
    again = enqueue(url, "--source-key", "k", "--payload", " 1 ")
    same((again["replayed"], again["payload_mismatch"]), (True, False))
    same(again["items"][0]["payload"], 1)
    same(enqueue(url, "--source-key", "k", session="other")["replayed"], False)


@case("what is refused is refused by name")
def _():
    url = store()
    base = ["queue", "enqueue", "s", "--delivery=earliest_safe_boundary", "--slot=join"]
    for words in (["queue", "enqueue", "s", "--slot=join"],
                  ["queue", "enqueue", "s", "--delivery=now", "--slot=join"],
                  ["queue", "enqueue", "", "--delivery=earliest_safe_boundary", "--slot=join"],
                  [*base, "--merge", "group:"], [*base, "--merge", "sometimes"],
                  [*base, "--available-at", "-1"], [*base, "--source-key", "a\nb"],
                  ["queue", "claim", "s"], ["queue", "claim", "s", "--owner", "o", "--max=1025"],
                  ["queue", "claim", "s", "--owner", "o", "--lease", "2d"],
                  ["queue", "ls", "s", "--cursor", "x"], ["queue", "renew", "nonsense"],
                  ["queue", "renew", "{"], ["queue", "renew", '{"claim":null}'],
                  ["session", "show", "a\x01"], ["session", "commit", "s"],
                  ["session", "commit", "s", "--complete", "nonsense"],
                  ["blob", "get", "abc"], ["blob", "put", "nowhere"]):
        status, code, error = refused(url, *words)
        same((words, status), (words, 2))
        assert code in ("invalid", "bad_handle"), error
    same(refused(url, "blob", "get", "0" * 64)[:2], (3, "not_found"))
    same(refused(url, "session", "show", "s")[:2], (3, "not_found"))


@case("nothing to claim is an answer with its reason")
def _():
    url = store()
    nothing = claim(url)
    same(nothing, {"claimed": False, "reason": "empty", "next_at_ms": None, "handle": None,
                   "claim": None})
    later = int(time.time() * 1000) + 3600000
    enqueue(url, "--available-at", str(later))
    nothing = claim(url)
    same((nothing["reason"], nothing["next_at_ms"]), ("not_yet_available", later))
    enqueue(url, delivery="after_current_turn_commit", session="t")
    same(claim(url, "--boundary", "active_turn_checkpoint", session="t")["reason"],
         "boundary_blocked")
    same(claim(url, "--max", "0", session="t")["reason"], "zero_limit")
    same(claim(url, session="t")["claimed"], True)
    held = claim(url, session="t")
    same(held["reason"], "head_held")
    assert held["next_at_ms"] > time.time() * 1000, held


@case("join batches of one merge key are claimed together, exact ones by their ids")
def _():
    url = store()
    ids = [enqueue(url, "--merge", merge, slot="join")["batch_id"]
           for merge in ("group:a", "group:a", "group:b")]
    same(ask(url, "queue", "ls", "s")["items"][0]["merge_key"], {"group": "a"})
    wrong = claim(url, "--batch", ids[1], "--batch", ids[0])
    same((wrong["claimed"], wrong["reason"]), (False, "other_batches"))
    got = claim(url, "--batch", ids[0], "--batch", ids[1])
    same([b["batch_id"] for b in got["claim"]["batches"]], ids[:2])
    same(claim(url, "--max", "64")["claim"]["batches"][0]["batch_id"], ids[2])


@case("a list goes on behind its cursor")
def _():
    url = store()
    for _ in range(5):
        enqueue(url)
    page = ask(url, "queue", "ls", "s", "--limit", "2")
    same((seqs(page), page["next_cursor"]), ([1, 2], "2"))
    page = ask(url, "queue", "ls", "s", "--limit", "3", "--cursor", page["next_cursor"])
    same((seqs(page), page["next_cursor"]), ([3, 4, 5], None))
    ran = belay("queue", "ls", "s", "--limit", "2", "--store", url)
    same(ran.stderr, b"belay: queue ls: there is more; go on with --cursor 2\n")


@case("a claim is taken as handle, JSON, answer, ids, file and standard input")
def _():
    url = store()
    enqueue(url)
    printed = answer("queue", "claim", "s", "--owner", "o", "--store", url, "--json")
    got = json.loads(printed)
    held = got["claim"]
    only = {name: held[name] for name in ("session_id", "claim_id", "lease_token", "lease_id")}
    ids = {**only, "batch_ids": [b["batch_id"] for b in held["batches"]]}
    pathlib.Path("claim.json").write_text(printed, encoding="utf-8")
    pathlib.Path("claim.txt").write_text(got["handle"] + "\n", encoding="utf-8")
    expires = held["expires_at_ms"]
    for form in (got["handle"], json.dumps(held), printed, json.dumps(ids), "@claim.json",
                 "@claim.txt"):
        renewed = ask(url, "queue", "renew", form, "--lease", "30m")
        same(renewed["claim_id"], "qwc:1:1")
        assert renewed["expires_at_ms"] > expires, renewed
    same(ask(url, "queue", "renew", "-", "--lease", "1s", **piped(printed))["expires_at_ms"]
         >= renewed["expires_at_ms"], True)  # never nearer

    status, code, error = refused(url, "queue", "renew", got["handle"], "--session", "t")
    same((status, code, error["detail"]["entity"]), (4, "session_binding_mismatch", "s"))
    forged = {**held, "lease_id": "0" * 32}
    same(refused(url, "queue", "renew", json.dumps(forged))[:2], (4, "lease_lost"))
    same(ask(url, "queue", "abandon", "-", **piped(got["handle"])),
         {"claim_id": "qwc:1:1", "released": 1})
    same(ask(url, "queue", "abandon", got["handle"])["released"], 0)
    same(refused(url, "queue", "renew", got["handle"])[2]["detail"]["reason"], "released")


@case("whoever lost a lease is told so, with exit status 4, and changes nothing")
def _():
    url = store()
    enqueue(url)
    old = claim(url, "--lease", "0s", owner="old")["handle"]
    new = claim(url, owner="new")
    same(new["claim"]["fence"], 2)
    for words in (["queue", "renew", old], ["queue", "complete", old],
                  ["session", "commit", "s", "--complete", old]):
        status, code, error = refused(url, *words)
        same((status, code, error["detail"]["reason"]), (4, "lease_lost", "superseded"))
    same(refused(url, "session", "show", "s")[0], 3)
    same(ask(url, "queue", "complete", new["handle"])["revision"], 1)
    same(refused(url, "queue", "complete", new["handle"])[2]["detail"]["reason"], "terminal")


@case("cancelling takes what nobody holds, dropping takes anything")
def _():
    url = store()
    batch = enqueue(url, "--payload", "1")
    held = claim(url)["handle"]
    ran = belay("queue", "cancel", "s", batch["batch_id"], "--store", url, "--json")
    same((ran.returncode, json.loads(ran.stdout)), (4, {"cancelled": False, "batch": None}))
    ask(url, "queue", "abandon", held)
    gone = ask(url, "queue", "cancel", "s", batch["batch_id"])
    same((gone["cancelled"], gone["batch"]["batch_id"]), (True, batch["batch_id"]))
    same(belay("queue", "cancel", "s", batch["batch_id"], "--store", url).returncode, 4)

    batch = enqueue(url)
    claim(url)
    same(ask(url, "queue", "drop", "s", str(batch["enqueue_seq"])), {"dropped": True})
    same(refused(url, "queue", "drop", "s", batch["batch_id"])[:2], (3, "not_found"))


@case("a payload that is nested as deeply as may be is shown as text")
def _():
    url = store()
    deep = "[" * 32 + "]" * 32
    item = enqueue(url, "--payload", deep)["items"][0]
    same((item["payload"], item["payload_text"]), (None, deep))
    held = claim(url)
    same(held["claim"]["batches"][0]["items"][0]["payload_text"], deep)


@case("processes that claim at once never get the same batch")
def _():
    url = store()
    for n in range(24):
        enqueue(url, "--payload", str(n))
    got, lock = [], threading.Lock()

    def work(owner):
        while True:
            one = claim(url, owner=owner)
            if not one["claimed"]:
                assert one["reason"] in ("empty", "head_held"), one
                if not ask(url, "queue", "ls", "s", "--pending")["items"]:
                    return
                continue
            with lock:
                got.append((one["claim"]["batches"][0]["enqueue_seq"], one["claim"]["fence"]))

    workers = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    same(sorted(got), [(seq, 1) for seq in range(1, 25)])


@case("a claim that waits is woken by another process")
def _():
    url = store()
    enqueue(url, session="other")
    begun = time.monotonic()
    with subprocess.Popen([tap.BELAY, "queue", "claim", "s", "--owner", "o", "--wait", "50s",
                           "--store", url, "--json"], stdout=subprocess.PIPE) as waiting:
        time.sleep(0.3)
        enqueue(url, "--payload", "1")
        got = json.loads(waiting.communicate(timeout=60)[0])
    same((waiting.returncode, got["claimed"]), (0, True))
    assert time.monotonic() - begun < 40
    begun = time.monotonic()
    same(claim(url, "--wait", "200ms", session="empty")["reason"], "empty")
    assert 0.2 <= time.monotonic() - begun < 30


# --- sessions ---


@case("a commit compares and sets, and says what it found")
def _():
    url = store()
    first = commit(url, {"graph": {"type": "append", "nodes": nodes("a", "b")}}, "--expect", "0")
    same((first["revision"], first["node_ids"], first["leaf_node_id"], first["node_count"]),
         (1, ["a", "b"], "b", 2))
    status, code, error = refused(url, "session", "commit", "s", "--expect", "0", "--file", "-",
                                  **piped("{}"))
    same((status, code), (4, "head_revision_conflict"))
    same((error["detail"]["expected"], error["detail"]["actual"]), (0, 1))
    status, code, error = refused(url, "session", "commit", "s", "--file", "-",
                                  **piped('{"expected_revision": 7}'))
    same((status, error["detail"]["expected"], error["detail"]["actual"]), (4, 7, 1))
    same(commit(url, {"expected_revision": 7}, "--expect", "any")["revision"], 2)
    same(commit(url, {"expected_revision": None})["revision"], 3)
    same(commit(url, {})["revision"], 4)
    ran = belay("session", "commit", "s", "--expect", "0", "--file", "-", "--store", url,
                **piped("{}"))
    assert ran.stderr.startswith(b"belay: session commit: session s: revision 0"), ran.stderr


@case("a turn that is committed again answers as the first time")
def _():
    url = store()
    enqueue(url)
    handle = claim(url)["handle"]
    body = {"graph": {"type": "append", "nodes": nodes("a")}}
    words = ("--expect", "0", "--turn", "t1", "--complete", handle)
    first = commit(url, body, *words)
    again = commit(url, body, *words)
    same((again.pop("replayed"), first.pop("replayed")), (True, False))
    same(again, first)
    status, code, _ = refused(url, "session", "commit", "s", "--turn", "t1", "--file", "-",
                              **piped('{"config": {"x": 1}}'))
    same((status, code), (4, "turn_conflict"))
    same(refused(url, "session", "commit", "s", "--file", "-",
                 **piped('{"session_id": "t"}'))[:2], (4, "session_binding_mismatch"))


@case("claims are completed by the file, by options and by both")
def _():
    url = store()
    for _ in range(3):
        enqueue(url)
    held = [claim(url) for _ in range(3)]
    pathlib.Path("one.json").write_text(json.dumps(held[2]), encoding="utf-8")
    done = commit(url, {"completes": [held[0]["handle"], held[1]["claim"]]},
                  "--complete", "@one.json")
    same(done["revision"], 1)
    same(ask(url, "queue", "ls", "s")["items"], [])
    enqueue(url)
    handle = claim(url)["handle"]
    same(ask(url, "session", "commit", "s", "--complete", handle)["revision"], 2)
    logged = ask(url, "session", "log", "s")["items"]
    same([e["revision"] for e in logged], [1, 2])
    same(len(logged[0]["commit"]["completed"]), 3)


@case("a field that a commit does not know is refused by its name")
def _():
    url = store()
    for body, field in (('{"grph": {}}', "grph"),
                        ('{"graph": {"type": "append", "leaf": "x"}}', "leaf"),
                        ('{"checkpoint": {"tool_state": {"text": "x"}}}', "text"),
                        ('{"usage": [{"source": "a", "model": "b", "tokens": 1}]}', "tokens")):
        status, code, error = refused(url, "session", "commit", "s", "--file", "-", **piped(body))
        same((status, code, error["detail"]["entity"]), (2, "invalid", field))
    for body, reason in (
            ({"type": "append", "nodes": nodes("a") + nodes("a")}, "duplicate_node"),
            ({"type": "append", "nodes": [{**nodes("b")[0], "parent_node_id": "x"}]},
             "dangling_parent"),
            ({"type": "append", "nodes": [], "leaf_node_id": "x"}, "missing_leaf")):
        status, code, error = refused(url, "session", "commit", "s", "--file", "-",
                                      **piped(json.dumps({"graph": body})))
        same((status, code, error["detail"]["reason"]), (2, "invalid", reason))
    status, _, error = refused(url, "session", "commit", "s", "--file", "-", **piped("{"))
    same(status, 2)
    assert error["message"].startswith("session commit: --file: JSON: "), error
    same(refused(url, "session", "show", "s")[0], 3)


@case("a session is shown, listed and read along its path")
def _():
    url = store()
    fork = {**nodes("c")[0], "parent_node_id": "a"}
    commit(url, {"graph": {"type": "append", "nodes": nodes("a", "b")},
                 "config": {"model": "m"}, "agent_frames": [{"frame_id": "f"}],
                 "current_agent_frame_id": "f",
                 "usage": [{"source": "turn", "model": "m", "input_tokens": 3},
                           {"source": "turn", "model": "m", "output_tokens": 4}]})
    commit(url, {"graph": {"type": "append", "nodes": [fork]}})
    head = ask(url, "session", "show", "s")
    same((head["session_id"], head["revision"], head["leaf_node_id"], head["node_count"]),
         ("s", 2, "c", 3))
    same((head["config"], head["agent_frames"], head["current_agent_frame_id"]),
         ({"model": "m"}, [{"frame_id": "f"}], "f"))
    same(head["usage"], [{"source": "turn", "model": "m", "input_tokens": 3, "output_tokens": 4,
                          "cached_input_tokens": 0, "reasoning_tokens": 0}])
    same((head["meta"], head["checkpoint_ref"]), (None, None))
    same(ask(url, "session", "path", "s"),
         {"leaf_node_id": "c", "truncated": False, "nodes": [nodes("a")[0], fork]})
    same([n["node_id"] for n in ask(url, "session", "path", "s", "--leaf", "b")["nodes"]],
         ["a", "b"])
    same(ask(url, "session", "node", "s", "c"), fork)
    same(refused(url, "session", "node", "s", "x")[:2], (3, "not_found"))
    page = ask(url, "session", "nodes", "s", "--limit", "2")
    same([n["node_id"] for n in page["items"]], ["a", "b"])
    page = ask(url, "session", "nodes", "s", "--cursor", page["next_cursor"])
    same(([n["node_id"] for n in page["items"]], page["next_cursor"]), (["c"], None))

    commit(url, {"graph": {"type": "unchanged", "leaf_node_id": "b"}})
    same(answer("session", "path", "s", "-q", "--store", url), "b\n")
    commit(url, {"graph": {"type": "unchanged", "leaf_node_id": None}})
    same(ask(url, "session", "path", "s"), {"leaf_node_id": None, "truncated": False, "nodes": []})

    commit(url, {}, session="t")
    commit(url, {}, session="u")
    page = ask(url, "session", "ls", "--limit", "2")
    same([h["session_id"] for h in page["items"]], ["s", "t"])
    page = ask(url, "session", "ls", "--cursor", page["next_cursor"])
    same(([h["session_id"] for h in page["items"]], page["next_cursor"]), (["u"], None))
    page = ask(url, "session", "log", "s", "--cursor", "2", "--limit", "1")
    same(([e["revision"] for e in page["items"]], page["next_cursor"]), ([3], "3"))
    lines = answer("session", "show", "s", "--store", url).splitlines()
    same(lines[0].split(), ["session_id", "s"])
    same(lines[-1].split(), ["turn", "m", "3", "4", "0", "0"])


@case("nodes are hidden, removed, and a lost leaf is healed")
def _():
    url = store()
    event = {"Conversation": {"id": "m", "role": "user", "parts": []}}
    commit(url, {"graph": {"type": "append", "nodes": [
        {"node_id": "a", "kind": "event", "event": event}, *nodes("b", "c")]}})
    same(ask(url, "session", "tombstone", "s", "c", "b", "x"),
         {"session_id": "s", "tombstoned": 2})
    same(ask(url, "session", "path", "s")["truncated"], True)
    same(ask(url, "session", "vacuum", "s"), {"session_id": "s", "removed": 2})
    same(ask(url, "session", "heal", "s"), {"session_id": "s", "changed": True})
    same(ask(url, "session", "heal", "s")["changed"], False)
    same(ask(url, "session", "show", "s")["leaf_node_id"], "a")
    same(ask(url, "check")["findings"], [])


@case("a checkpoint is stored in blobs, and a ref that is not there is refused")
def _():
    url = store()
    done = commit(url, {"checkpoint": {
        "turn_state": {"turn_index": 1}, "tool_state": {"json": {"b": 1, "a": 2}},
        "plugin_snapshot": {"body": "text"}, "plugin_snapshot_revision": 3,
        "execution_state": {"body_base64": "AP/+"}}})
    info = ask(url, "session", "checkpoint", "s")
    same(info["checkpoint_ref"], done["checkpoint_ref"])
    same(info["manifest"], done["manifest"])
    same((info["turn_state"], info["plugin_snapshot_revision"]), ({"turn_index": 1}, 3))
    for part, content in (("tool_state", b'{"a":2,"b":1}'), ("plugin_snapshot", b"text"),
                          ("execution_state", b"\x00\xff\xfe")):
        same(info[part + "_ref"], hashlib.sha256(content).hexdigest())
        same(belay("blob", "get", info[part + "_ref"], "--store", url).stdout, content)
    same(hashlib.sha256(belay("blob", "get", info["checkpoint_ref"], "--store", url).stdout)
         .hexdigest(), info["checkpoint_ref"])
    kept = commit(url, {"checkpoint": {"tool_state": {"ref": info["tool_state_ref"]}}})
    same(kept["manifest"]["tool_state_ref"], info["tool_state_ref"])
    status, code, error = refused(
        url, "session", "commit", "s", "--file", "-",
        **piped(json.dumps({"checkpoint": {"tool_state": {"ref": "0" * 64}}})))
    same((status, code, error["detail"]["reason"]), (2, "invalid", "unknown_ref"))
    same(ask(url, "check")["findings"], [])


@case("meta needs no commit, and names a parent")
def _():
    url = store()
    same(refused(url, "session", "meta", "show", "s")[:2], (3, "not_found"))
    meta = ask(url, "session", "meta", "set", "s", "--model", "m")
    same((meta["name"], meta["model"], meta["cwd"], meta["parent"]), ("s", "m", None, None))
    assert meta["created_at"].startswith("unix:"), meta
    meta = ask(url, "session", "meta", "set", "s", "--name", "n", "--if-absent")
    same(meta["name"], "s")
    meta = ask(url, "session", "meta", "set", "s", "--name", "n", "--cwd", "/", "--parent", "p",
               "--caused-by", '{"tool": 1}', "--created-at", "long ago")
    same(ask(url, "session", "meta", "show", "s"), meta)
    same(meta, {"session_id": "s", "name": "n", "created_at": "long ago", "model": "",
                "cwd": "/", "parent": "p", "caused_by": {"tool": 1}})
    commit(url, {})
    same(ask(url, "session", "show", "s")["meta"], meta)
    same([h["session_id"] for h in ask(url, "session", "ls", "--parent", "p")["items"]], ["s"])
    same(ask(url, "session", "ls", "--parent", "q")["items"], [])


@case("a session is deleted for good, with its inbox")
def _():
    url = store()
    commit(url, {})
    enqueue(url)
    status, _, error = refused(url, "session", "delete", "s", "--confirm", "t")
    same((status, error["detail"]["reason"]), (2, "confirm"))
    same(belay("session", "delete", "s", "--store", url).returncode, 2)
    same(ask(url, "session", "delete", "s", "--confirm", "s"),
         {"session_id": "s", "deleted": True})
    ask(url, "session", "delete", "s", "--confirm", "s")
    status, code, error = refused(url, "session", "show", "s")
    same((status, code, error["detail"]["reason"]), (3, "not_found", "deleted"))
    for words in (["queue", "enqueue", "s", "--delivery=earliest_safe_boundary", "--slot=join"],
                  ["session", "commit", "s", "--file", "-"]):
        status, code, error = refused(url, *words, **piped("{}"))
        same((status, code, error["detail"]["reason"]), (4, "wrong_state", "deleted"))
    same(ask(url, "session", "ls")["items"], [])
    same(ask(url, "check")["findings"], [])


@case("attachments are announced, fulfilled and forgotten")
def _():
    url = store()
    same(ask(url, "attachment", "intent", "s", "a", "--uri", "file:a"),
         {"attachment_id": "a", "new": True})
    same(ask(url, "attachment", "intent", "s", "a", "--uri", "file:b")["new"], False)
    for name in "bcd":
        ask(url, "attachment", "intent", "s", name, "--uri", "file:" + name)
    same(ask(url, "attachment", "commit", "s", "a", "x"), {"session_id": "s", "committed": 1})
    commit(url, {"attachments": ["b"]})
    left = ask(url, "attachment", "ls", "s")["items"]
    same([(a["attachment_id"], a["uri"], a["committed_at_ms"]) for a in left],
         [("c", "file:c", None), ("d", "file:d", None)])
    same(ask(url, "attachment", "ls", "s", "--older-than", "1")["items"], [])
    same(ask(url, "attachment", "forget", "s", "c"), {"attachment_id": "c", "removed": True})
    same(ask(url, "attachment", "forget", "s", "c")["removed"], False)
    same(answer("attachment", "ls", "s", "-q", "--store", url), "d\n")


# --- blobs ---

BINARY = random.Random(7).randbytes(3 << 20)
BINARY_SHA = hashlib.sha256(BINARY).hexdigest()


@case("three mebibytes of anything go in and come out, by file and by pipe")
def _():
    url = store()
    pathlib.Path("binary").write_bytes(BINARY)
    put = ask(url, "blob", "put", "binary", "--pin", "mine", "--expect", BINARY_SHA)
    same(put, {"sha256": BINARY_SHA, "size": len(BINARY), "stored_size": len(BINARY),
               "existed": False, "pin": "mine"})
    ran = belay("blob", "put", "-", "-q", "--store", url, stdin=None, input=BINARY)
    same(ran.stdout.decode(), BINARY_SHA + "\n")
    ran = belay("blob", "get", BINARY_SHA, "--store", url)
    same((ran.returncode, ran.stdout == BINARY, ran.stderr), (0, True, b""))
    got = ask(url, "blob", "get", BINARY_SHA, "--to", "copy")
    same(got, {"sha256": BINARY_SHA, "size": len(BINARY)})
    same(pathlib.Path("copy").read_bytes() == BINARY, True)
    status, code, error = refused(url, "blob", "put", "binary", "--expect", "0" * 64)
    same((status, code, error["detail"]["reason"]), (2, "invalid", "hash_mismatch"))

    zeros = ask(url, "blob", "put", "--kind", "tool_state", "/dev/stdin",
                stdin=None, input=bytes(1 << 20))
    assert zeros["stored_size"] < zeros["size"] / 10, zeros
    same(belay("blob", "get", zeros["sha256"], "--store", url).stdout, bytes(1 << 20))
    same(ask(url, "blob", "put", "/dev/null")["size"], 0)
    same(belay("blob", "get", hashlib.sha256(b"").hexdigest(), "--store", url).stdout, b"")
    same(ask(url, "check")["findings"], [])


@case("a blob is never in memory as a whole")
def _():
    if b"__asan_init" in tap.BELAY.read_bytes():
        return  # its memory is not ours to count
    url = store()
    size = 96 << 20
    with open("large", "wb") as file:
        file.truncate(size)
    for words in (["blob", "put", "large"], ["blob", "get", None, "--to", "large2"]):
        words = [word or sha for word in words] if None in words else words
        with subprocess.Popen([tap.BELAY, *words, "--store", url, "-q"],
                              stdout=subprocess.PIPE) as running:
            sha = running.stdout.read().decode().strip()
            _, status, used = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        same(running.returncode, 0)
        assert used.ru_maxrss < 48 << 10, (words, used.ru_maxrss)
    same(os.path.getsize("large2"), size)
    os.unlink("large")
    os.unlink("large2")


def damage(url):
    """Change a byte of every chunk."""
    db = sqlite3.connect(path_of(url))
    with db:
        for row, data in db.execute("SELECT rowid, data FROM belay_chunk").fetchall():
            db.execute("UPDATE belay_chunk SET data = ? WHERE rowid = ?",
                       (data[:-1] + bytes([data[-1] ^ 1]), row))
    db.close()


@case("a damaged blob is never given out as a whole one")
def _():
    url = store()
    sha = answer("blob", "put", "-", "-q", "--store", url, **piped("content")).strip()
    damage(url)
    ran = belay("blob", "get", sha, "--store", url)
    same((ran.returncode, ran.stdout), (1, b""))
    ran = belay("blob", "get", sha, "--store", url, "--to", "damaged")
    same((ran.returncode, ran.stdout, os.path.exists("damaged")), (1, b"", False))

    url = store()
    pathlib.Path("binary").write_bytes(BINARY)
    answer("blob", "put", "binary", "--store", url)
    damage(url)
    os.mkdir("targets")
    ran = belay("blob", "get", BINARY_SHA, "--store", url, "--json")
    same((ran.returncode, json.loads(ran.stderr)["error"]["code"]), (1, "corrupt"))
    assert len(ran.stdout) < len(BINARY)
    ran = belay("blob", "get", BINARY_SHA, "--store", url, "--to", "targets/damaged")
    same((ran.returncode, ran.stdout, os.listdir("targets")), (1, b"", []))


@case("an output that cannot be written is exit status 1")
def _():
    url = store()
    sha = answer("blob", "put", "-", "-q", "--store", url, **piped("content")).strip()
    with open("/dev/full", "wb") as full:
        ran = belay("blob", "get", sha, "--store", url, stdout=full)
    same((ran.returncode, ran.stderr),
         (1, b"belay: blob get: standard output: cannot be written: No space left on device\n"))
    ran = belay("blob", "get", sha, "--to", "/nowhere/x", "--store", url)
    same((ran.returncode, ran.stdout), (1, b""))
    status, _, error = refused(url, "blob", "put", "/")
    same((status, error["detail"]["reason"]), (2, "file"))


@case("pins keep what gc would take")
def _():
    url = store()
    shas = {name: answer("blob", "put", "-", "-q", "--store", url, **piped(name)).strip()
            for name in ("kept", "lost", "used")}
    same(ask(url, "blob", "pin", "p", shas["lost"]), {"name": "p", "sha256": shas["lost"]})
    ask(url, "blob", "pin", "p", shas["kept"])  # moves
    same([(p["name"], p["sha256"]) for p in ask(url, "blob", "pins")["items"]],
         [("p", shas["kept"])])
    same(refused(url, "blob", "pin", "q", "0" * 64)[:2], (3, "not_found"))
    commit(url, {"checkpoint": {"tool_state": {"ref": shas["used"]}}})
    same(ask(url, "gc")["outcome"], "nothing")  # within the grace
    time.sleep(0.01)
    dry = ask(url, "gc", "--grace", "0s", "--dry-run")
    same((dry["dry_run"], dry["deleted_blobs"]), (True, 1))
    swept = ask(url, "gc", "--grace", "0s")
    same((swept["outcome"], swept["deleted_blobs"], swept["retained_blobs"]), ("swept", 1, 3))
    same(swept["code"], None)
    same(refused(url, "blob", "get", shas["lost"])[0], 3)
    for name in ("kept", "used"):
        same(belay("blob", "get", shas[name], "--store", url).stdout, name.encode())
    same(ask(url, "blob", "unpin", "p"), {"name": "p", "removed": True})
    same(ask(url, "blob", "unpin", "p")["removed"], False)
    same(answer("gc", "--grace", "0s", "-q", "--store", url), "swept\n")
    same(answer("gc", "--grace", "0s", "-q", "--store", url), "nothing\n")
    same(ask(url, "check")["findings"], [])


@case("gc that cannot prove what is alive refuses, with exit status 1")
def _():
    url = store()
    lost = answer("blob", "put", "-", "-q", "--store", url, **piped("lost")).strip()
    done = commit(url, {"checkpoint": {"turn_state": {"x": 1}}})
    db = sqlite3.connect(path_of(url))
    with db:
        assert db.execute("DELETE FROM belay_blob WHERE sha256 = ?",
                          (done["checkpoint_ref"],)).rowcount == 1
    db.close()
    time.sleep(0.01)
    ran = belay("gc", "--grace", "0s", "--store", url, "--json")
    report = json.loads(ran.stdout)
    same((ran.returncode, report["outcome"], report["reason"], report["entity"]),
         (1, "refused", "missing_manifest", "s"))
    same(belay("blob", "get", lost, "--store", url).stdout, b"lost")


# --- together ---


@case("agents that die anywhere do everything once")
def _():
    url = store()
    for n in range(6):
        enqueue(url, "--payload", str(n))
    for turn in range(40):
        one = claim(url, "--lease", "0s", owner=f"w{turn}")
        if not one["claimed"]:
            break
        if turn % 3 == 0:
            continue  # died with the claim: the next one takes it over
        number = one["claim"]["batches"][0]["items"][0]["payload"]
        node = {"node_id": f"n{number}", "kind": "plugin", "body": number}
        revision = 0
        if turn > 1:
            revision = ask(url, "session", "show", "s")["revision"]
            node["parent_node_id"] = ask(url, "session", "show", "s")["leaf_node_id"]
        commit(url, {"graph": {"type": "append", "nodes": [node]}}, "--expect", str(revision),
               "--turn", f"t{number}", "--complete", one["handle"])
    same([n["body"] for n in ask(url, "session", "path", "s")["nodes"]], list(range(6)))
    same(ask(url, "queue", "ls", "s")["items"], [])
    same(ask(url, "check")["findings"], [])


@case("namespaces keep inboxes, sessions and blobs apart")
def _():
    url = store()
    enqueue(url, "--namespace", "a")
    ask(url, "session", "commit", "s", "--file", "-", "--namespace", "a", **piped("{}"))
    same(ask(url, "queue", "ls", "s", "--namespace", "b")["items"], [])
    same(ask(url, "session", "ls", "--namespace", "b")["items"], [])
    ask(url, "namespace", "delete", "a", "--confirm", "a")
    same(ask(url, "queue", "ls", "s", "--namespace", "a")["items"], [])
    same(ask(url, "check")["findings"], [])


tap.main()
