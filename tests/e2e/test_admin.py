#!/usr/bin/env -S python3 -B
"""The verbs of an administrator, on real files: also on damaged ones."""

import fcntl
import hashlib
import json
import os
import pathlib
import signal
import sqlite3
import struct
import subprocess
import time

import tap
from tap import answer, belay, case, same

_n = 0


def store():
    """A URL that nobody has used yet, and its path."""
    global _n
    _n += 1
    path = pathlib.Path(f"store{_n}.db").absolute()
    return f"sqlite:{path}", path


def ask(url, *words):
    return json.loads(answer(*words, "--store", url, "--json"))


def refused(url, *words):
    """Exit status and error of a command that must fail."""
    ran = belay(*words, "--store", url, "--json")
    same(ran.stdout, b"")
    return ran.returncode, json.loads(ran.stderr)["error"]


def hurt(path, *statements):
    """Change a store behind Belay's back."""
    db = sqlite3.connect(path)
    with db:
        for sql, *values in statements:
            changed = db.execute(sql, values).rowcount
            assert changed != 0, sql
    db.close()


def rows(path, sql):
    db = sqlite3.connect(path)
    found = db.execute(sql).fetchall()
    db.close()
    return found


def check(url, status=0):
    """Codes that a check finds, with their namespaces."""
    ran = belay("check", url, "--json")
    same((ran.returncode, ran.stderr), (status, b""))
    result = json.loads(ran.stdout)
    same(result["ok"], status == 0)
    same(result["found"], len(result["findings"]))
    for finding in result["findings"]:
        same(sorted(finding), ["code", "entity", "message", "namespace"])
    return sorted((f["code"], f["namespace"]) for f in result["findings"])


def doctor(url, status=0, *words):
    ran = belay("doctor", url, "--json", *words)
    same((ran.returncode, ran.stderr), (status, b""))
    return json.loads(ran.stdout)


def levels(result):
    return {f["what"]: f["level"] for f in result["findings"]}


# --- namespaces ---


@case("a namespace is created once, listed and deleted with what is in it")
def _():
    url, path = store()
    same(ask(url, "namespace", "ls"), {"items": [], "next_cursor": None})
    same(ask(url, "namespace", "create", "b"), {"name": "b", "created": True})
    same(ask(url, "namespace", "create", "b"), {"name": "b", "created": False})
    ask(url, "epoch", "raise", "--namespace", "a")
    found = ask(url, "namespace", "ls")["items"]
    same([(n["name"], n["state"]) for n in found], [("a", "active"), ("b", "active")])
    assert abs(found[0]["created_at_ms"] / 1000 - time.time()) < 60
    same(answer("namespace", "ls", "-q", "--store", url), "a\nb\n")
    page = ask(url, "namespace", "ls", "--limit", "1")
    same((page["items"][0]["name"], page["next_cursor"]), ("a", "a"))
    page = ask(url, "namespace", "ls", "--limit", "1", "--cursor", "a")
    same((page["items"][0]["name"], page["next_cursor"]), ("b", None))

    same(ask(url, "namespace", "delete", "a", "--confirm", "a"),
         {"name": "a", "deleted": True})
    same(answer("namespace", "ls", "-q", "--store", url), "b\n")
    for table in ("epoch", "clock", "format", "log", "audit_head"):
        same(rows(path, f"SELECT count(*) FROM belay_{table} WHERE ns = 'a'"), [(0,)])
    same(check(url), [])


@case("deleting is refused without the right word, for _belay and for what is not there")
def _():
    url, _ = store()
    ask(url, "namespace", "create", "a")
    same(belay("namespace", "delete", "a", "--store", url).returncode, 2)
    status, error = refused(url, "namespace", "delete", "a", "--confirm", "b")
    same((status, error["detail"]["reason"]), (2, "confirm"))
    status, error = refused(url, "namespace", "delete", "_belay", "--confirm", "_belay")
    same((status, error["code"]), (2, "invalid"))
    status, error = refused(url, "namespace", "delete", "c", "--confirm", "c")
    same((status, error["code"], error["detail"]["entity"]), (3, "not_found", "c"))
    same(answer("namespace", "ls", "-q", "--store", url), "a\n")


@case("a deletion that was interrupted keeps everybody out and can be finished")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    hurt(path, ("UPDATE belay_namespace SET state = 'deleting'",))
    status, error = refused(url, "epoch", "show")
    same((status, error["code"], error["detail"]["reason"]), (4, "wrong_state", "deleting"))
    status, error = refused(url, "namespace", "create", "default")
    same((status, error["code"]), (4, "wrong_state"))
    same(check(url), [])
    same(levels(doctor(url, 4))["namespace"], "bad")
    same(ask(url, "namespace", "ls")["items"][0]["state"], "deleting")
    ask(url, "namespace", "delete", "default", "--confirm", "default")
    same(ask(url, "epoch", "show")["epoch"], 0)
    same([e["detail"]["step"] for e in ask(url, "audit", "ls", "--system")["items"]],
         ["resumed", "done"])


@case("much is deleted in steps, and a kill between them costs nothing")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    hurt(path, ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                " WHERE i < 200000) INSERT INTO belay_rank (ns, idx, rank, member)"
                " SELECT 'default', 'things', i, 'm' || i FROM n",))
    running = subprocess.Popen([tap.BELAY, "namespace", "delete", "default", "--confirm",
                                "default", "--store", url], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    for _ in range(1000):
        left = rows(path, "SELECT count(*) FROM belay_rank WHERE idx = 'things'")[0][0]
        if left < 200000:
            break
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    ask(url, "namespace", "create", "other")
    if running.returncode != 0:  # it may have been quicker
        ask(url, "namespace", "delete", "default", "--confirm", "default")
    same(rows(path, "SELECT count(*) FROM belay_rank WHERE idx = 'things'"), [(0,)])
    same(answer("namespace", "ls", "-q", "--store", url), "other\n")
    same(check(url), [])


# --- epoch and clock ---


@case("an epoch rises by one each time and says when and why")
def _():
    url, _ = store()
    same(ask(url, "epoch", "show"), {"namespace": "default", "epoch": 0, "fence_floor": 0,
                                     "raised_at_ms": None, "reason": None,
                                     "granting": True})
    same(ask(url, "epoch", "raise", "--reason", "restored")["epoch"], 1)
    same(ask(url, "epoch", "raise")["epoch"], 2)
    shown = ask(url, "epoch", "show")
    same((shown["epoch"], shown["reason"]), (2, None))
    same(answer("epoch", "show", "-q", "--store", url), "2\n")
    same(ask(url, "epoch", "show", "--namespace", "other")["epoch"], 0)


@case("the last epoch is refused")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    hurt(path, ("UPDATE belay_epoch SET epoch = 8191",))
    for words in (("epoch", "raise"), ("clock", "reset")):
        status, error = refused(url, *words, "--namespace", "default")
        same((status, error["code"]), (4, "out_of_range"))
    same(ask(url, "audit", "verify")["entries"], 1)


@case("a clock is shown, doubted after a step, and reset in both directions")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    shown = ask(url, "clock", "show")
    same((shown["doubted"], shown["step_ms"]), (False, None))
    assert abs(shown["now_ms"] - shown["wall_ms"]) < 60000
    year = 365 * 24 * 3600 * 1000
    for factor in (1, -1):
        hurt(path, (f"UPDATE belay_clock SET mark_ms = mark_ms + {factor * year}"
                    " WHERE ns = 'default'",))
        shown = ask(url, "clock", "show")
        same(shown["doubted"], True)
        assert abs(shown["step_ms"] + factor * year) < 60000, shown
        assert abs(shown["now_ms"] - shown["mark_ms"]) < 60000, shown
        same(levels(doctor(url))["clock"], "warn")
        epoch = ask(url, "epoch", "show")["epoch"]
        reset = ask(url, "clock", "reset")
        same((reset["epoch"], reset["doubted"]), (epoch + 1, False))
        shown = ask(url, "clock", "show")
        assert abs(shown["now_ms"] / 1000 - time.time()) < 60, shown
        same(shown["doubted"], False)
        same(levels(doctor(url))["clock"], "ok")
    same([e["verb"] for e in ask(url, "audit", "ls")["items"]],
         ["epoch.raise", "clock.reset", "clock.reset"])


# --- audit ---


def entry_hash(entry):
    """As audit.h has it."""
    entry = {key: value for key, value in entry.items() if key != "hash"}
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@case("every admin verb is in the audit log, chained by hashes anybody can compute")
def _():
    url, _ = store()
    ask(url, "namespace", "create", "a")
    ask(url, "namespace", "create", "a")
    ask(url, "epoch", "raise", "--reason", 'why "not" ä')
    ask(url, "clock", "reset")
    ask(url, "namespace", "delete", "a", "--confirm", "a")
    for words, verbs in ((("--system",), ["namespace.create", "namespace.delete",
                                          "namespace.delete"]),
                         ((), ["epoch.raise", "clock.reset"])):
        entries = ask(url, "audit", "ls", *words)["items"]
        same([e["verb"] for e in entries], verbs)
        previous = "0" * 64
        for number, entry in enumerate(entries, 1):
            same((entry["seq"], entry["previous"]), (number, previous))
            assert entry["principal"].startswith("cli:"), entry
            same(entry["hash"], entry_hash(entry))
            previous = entry["hash"]
        verified = ask(url, "audit", "verify", *words)
        same((verified["ok"], verified["entries"], verified["hash"]),
             (True, len(verbs), previous))
    lines = answer("audit", "ls", "--store", url, "--output", "jsonl").splitlines()
    same([json.loads(line)["seq"] for line in lines], [1, 2])
    page = ask(url, "audit", "ls", "--limit", "1")
    same(page["next_cursor"], "1")
    same(ask(url, "audit", "ls", "--cursor", "1")["items"][0]["seq"], 2)
    same(refused(url, "audit", "ls", "--cursor", "x")[0], 2)


def chained(url):
    for i in range(5):
        ask(url, "epoch", "raise", "--reason", f"reason {i}")


TAMPERED = [
    ("hash_mismatch", 3, ("UPDATE belay_log SET data = CAST(replace(CAST(data AS TEXT),"
                          " 'reason 2', 'reason X') AS BLOB) WHERE seq = 3",)),
    ("gap", 2, ("DELETE FROM belay_log WHERE seq = 2",)),
    ("gap", 1, ("DELETE FROM belay_log WHERE seq = 1",)),
    ("malformed", 4, ("UPDATE belay_log SET data = x'ff' WHERE seq = 4",)),
    ("head_mismatch", 4, ("DELETE FROM belay_log WHERE seq = 5",)),
    ("head_mismatch", 5, ("UPDATE belay_audit_head SET hash = 'x'",)),
]


@case("a chain that was tampered with is broken, and where")
def _():
    for reason, at, statement in TAMPERED:
        url, path = store()
        chained(url)
        hurt(path, statement)
        ran = belay("audit", "verify", "--store", url, "--json")
        same((ran.returncode, ran.stderr), (1, b""))
        result = json.loads(ran.stdout)
        same((result["ok"], result["reason"], result["broken_at"]), (False, reason, at))
        same(check(url, 1), [("audit_broken", "default")])
        same(len(ask(url, "audit", "ls")["items"]) >= 4, True)


@case("an entry that was written anew with its own hash breaks the chain behind it")
def _():
    url, path = store()
    chained(url)
    entry = ask(url, "audit", "ls")["items"][2]
    entry["detail"]["reason"] = "another"
    entry["hash"] = entry_hash(entry)
    text = json.dumps(entry, sort_keys=True, separators=(",", ":")).encode()
    hurt(path, ("UPDATE belay_log SET data = ? WHERE seq = 3", text))
    result = json.loads(belay("audit", "verify", "--store", url, "--json").stdout)
    same((result["reason"], result["broken_at"]), ("chain_break", 4))


# --- check ---

CHUNK = 1 << 20


def plant_blob(path, content):
    """A blob as Belay would have written it; its sha256."""
    sha = hashlib.sha256(content).hexdigest()
    pieces = [content[i:i + CHUNK] for i in range(0, len(content), CHUNK)]
    upload = "upl_" + sha[:26]
    hurt(path, ("INSERT INTO belay_blob (ns, sha256, upload, size, chunks, created_at_ms,"
                " ver) VALUES ('default', ?, ?, ?, ?, 1, 1)",
                sha, upload, len(content), len(pieces)),
         *(("INSERT INTO belay_chunk (ns, upload, no, data) VALUES ('default', ?, ?, ?)",
            upload, i, piece) for i, piece in enumerate(pieces)))
    return sha


DAMAGE = [
    ("nothing", None, []),
    ("a rank entry is missing", ("DELETE FROM belay_rank WHERE idx = 'namespaces'",),
     [("row_without_rank", "_belay")]),
    ("a rank entry too many", ("INSERT INTO belay_rank (ns, idx, rank, member) VALUES"
                               " ('default', 'uploads', 1, 'upl_x')",),
     [("rank_without_row", "default")]),
    ("a registry row is missing", ("DELETE FROM belay_namespace",),
     [("rank_without_row", "_belay")] + [("unregistered", "default")] * 8),
    ("a gap in a log", ("INSERT INTO belay_log (ns, stream, seq, data) VALUES"
                        " ('default', 'p', 1, x''), ('default', 'p', 3, x'')",),
     [("log_gap", "default")]),
    ("a position that was never given", ("INSERT INTO belay_feed (ns, feed, pos, data)"
                                         " VALUES ('default', 'f', 9, x'')",),
     [("feed_position", "default")]),
    ("wrong bytes in a blob", ("UPDATE belay_chunk SET data = CAST(replace(data,"
                               " 'b', 'c') AS BLOB) WHERE no = 1",),
     [("hash_mismatch", "default")]),
    ("a missing chunk", ("DELETE FROM belay_chunk WHERE no = 1",),
     [("missing_chunk", "default")]),
    ("chunks of nobody", ("DELETE FROM belay_blob",), [("orphan_chunk", "default")]),
    ("a wrong size", ("UPDATE belay_blob SET size = size - 1",),
     [("wrong_size", "default")]),
    ("no format", ("DELETE FROM belay_format WHERE ns = 'default'",),
     [("missing_row", "default")]),
    ("a dropped index", ("DROP INDEX belay_rank_member",), [("schema_missing", None)]),
]


@case("a check finds planted damage and nothing else, and exits with 1")
def _():
    for name, statement, want in DAMAGE:
        url, path = store()
        ask(url, "epoch", "raise")
        plant_blob(path, b"a" * CHUNK + b"b" * 10)
        same(check(url), [])
        if statement:
            hurt(path, statement)
        found = check(url, 1 if want else 0)
        assert found == sorted(want, key=str) or found == want, (name, found)


@case("a check of a file with broken pages reports them")
def _():
    url, path = store()
    chained(url)
    plant_blob(path, bytes(range(256)) * 64)
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'belay_log'")
    page = root.fetchone()[0]
    db.close()
    with open(path, "r+b") as file:
        file.seek((page - 1) * 4096 + 8)
        file.write(b"\xff" * 200)
    ran = belay("check", url, "--json")
    same((ran.returncode, ran.stderr), (1, b""))
    codes = {f["code"] for f in json.loads(ran.stdout)["findings"]}
    assert codes & {"integrity", "unreadable"}, codes


@case("people see findings as a table, scripts the word")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    assert answer("check", url).startswith("ok       true\nfound    0\n")
    same(answer("check", url, "-q"), "true\n")
    hurt(path, ("DELETE FROM belay_rank WHERE idx = 'namespaces'",))
    ran = belay("check", url)
    same((ran.returncode, ran.stderr), (1, b""))
    lines = ran.stdout.decode().split("\n\n")[1].splitlines()
    same(lines[0].split(), ["code", "namespace", "entity", "message"])
    assert lines[1].startswith("row_without_rank  _belay     default"), lines
    same(belay("check", url, "-q").stdout, b"false\n")


@case("the URL behind the command goes before --store and BELAY_STORE")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    other, other_path = store()
    for words, env in (((url, "--store", other), {}), ((url,), {"BELAY_STORE": other}),
                       (("--store", url), {"BELAY_STORE": other}), ((), {"BELAY_STORE": url})):
        result = json.loads(answer("check", *words, "--json", env=env))
        same(result["checked"]["namespaces"], 2)
        assert json.loads(answer("doctor", *words, "--json", env=env))["ok"]
    assert path.exists() and not other_path.exists()


# --- doctor ---


@case("a doctor tells how a sound store is doing")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    os.chmod(path, 0o600)
    result = doctor(url)
    same((result["ok"], result["store"], result["durability"], result["code"]),
         (True, "sqlite", "durable", None))
    told = levels(result)
    for what in ("kernel", "open_files", "sqlite", "durability", "pages", "file", "wal",
                 "wal_readers", "disk", "lock", "clock"):
        same((what, told[what]), (what, "ok"))
    assert "file_mode" not in told
    os.chmod(path, 0o644)
    same(levels(doctor(url))["file_mode"], "warn")
    assert "free" in [f for f in result["findings"] if f["what"] == "lock"][0]["message"]
    table = answer("doctor", url)
    assert "\n\nlevel  what" in table, table
    same(levels(doctor("memory:"))["durability"], "warn")
    same(levels(doctor("sqlite::memory:"))["durability"], "warn")


@case("a doctor names who reads what a checkpoint would overwrite")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM belay_log").fetchone()
    ask(url, "epoch", "raise")
    result = doctor(url)
    told = [f for f in result["findings"] if f["what"] == "wal_readers"][0]
    same(told["level"], "warn")
    assert "cannot be copied" in told["message"], told
    if f": {os.getpid()} " in pathlib.Path("/proc/locks").read_text(encoding="utf-8"):
        assert f"pid {os.getpid()}" in told["message"], told
    reader.close()
    same(levels(doctor(url))["wal_readers"], "ok")


@case("a doctor tells why a store cannot be opened, with the status of that error")
def _():
    here = pathlib.Path().absolute()
    foreign = here / "foreign.db"
    hurt(foreign, ("CREATE TABLE t (a)",))
    (here / "text.db").write_text("This is no database, but long enough to be one.\n" * 50,
                                  encoding="utf-8")
    (here / "folder.db").mkdir()
    newer, newer_path = store()
    ask(newer, "epoch", "raise")
    hurt(newer_path, ("PRAGMA user_version = 99",))
    for url, status, code in ((f"sqlite:{foreign}", 78, "unsupported_format"),
                              (newer, 78, "unsupported_format"),
                              (f"sqlite:{here}/text.db", 69, "unavailable"),
                              (f"sqlite:{here}/folder.db", 69, "unavailable"),
                              (f"sqlite:{here}/nowhere/x.db", 69, "unavailable")):
        result = doctor(url, status)
        same((result["ok"], result["code"], result["durability"]), (False, code, None))
        told = levels(result)
        same((told["open"], told["kernel"]), ("bad", "ok"))
        same(belay("check", url).returncode, status)
    same(belay("doctor", "nonsense").returncode, 2)
    same(belay("doctor", "nonsense:").returncode, 2)


@case("a doctor names who holds the lock instead of waiting for it")
def _():
    url, path = store()
    ask(url, "epoch", "raise")
    with open(f"{path}-belay", "r+b") as file:
        # struct flock: an open-file-description lock on the write byte
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1, 1, 0)
        fcntl.fcntl(file, 37, lock)  # F_OFD_SETLK
        file.seek(64)
        file.write(f"pid {os.getpid()}\n".encode().ljust(32))
        file.flush()
        result = doctor(url, 69)
        told = [f for f in result["findings"] if f["what"] == "open"][0]
        assert f"pid {os.getpid()}" in told["message"], told
    assert doctor(url)["ok"]


@case("few open files are told")
def _():
    ran = subprocess.run(["sh", "-c", 'ulimit -n 64; exec "$0" doctor memory: --json',
                          tap.BELAY], check=False, stdout=subprocess.PIPE)
    same(ran.returncode, 0)
    same(levels(json.loads(ran.stdout))["open_files"], "warn")


tap.main()
