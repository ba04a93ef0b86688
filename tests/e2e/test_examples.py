#!/usr/bin/env -S python3 -B
"""The examples do what their first comment says, killed wherever it hurts."""

import json
import os
import signal
import subprocess

import tap
from tap import case, same

STORE = "sqlite:app.db"
PLACES = ["claimed", "worked", "committed"]


def belay(*words):
    return json.loads(tap.answer("--store", STORE, "--json", *words))


def enqueue(text):
    return belay("queue", "enqueue", "chat", "--delivery", "earliest_safe_boundary",
                 "--slot", "exclusive", "--payload", json.dumps({"text": text}))


def agent(die=None):
    env = dict(os.environ)
    env.pop("AGENT_DIE", None)
    if die:
        env["AGENT_DIE"] = die
    return subprocess.run([tap.BUILD / "examples/agent", STORE, "chat", "--drain"], env=env,
                          stdout=subprocess.PIPE, text=True, timeout=60)


def heard():
    return [n["body"]["heard"]["text"] for n in belay("session", "path", "chat")["nodes"]]


@case("an agent that is killed anywhere answers everything once")
def killed_anywhere():
    for place in PLACES:
        enqueue(f"before {place}")
        same(agent(die=place).returncode, -signal.SIGKILL)
    enqueue("at last")
    done = agent()
    same(done.returncode, 0)
    # What was held for a while is overtaken meanwhile: the order is not the inbox's.
    same(sorted(heard()), sorted([f"before {place}" for place in PLACES] + ["at last"]))
    same(belay("queue", "ls", "chat")["items"], [])


@case("what the dead had claimed is claimed again, with a greater fence")
def claimed_again():
    enqueue("again")
    same(agent(die="claimed").returncode, -signal.SIGKILL)
    same(agent().returncode, 0)
    nodes = belay("session", "path", "chat")["nodes"]
    same(nodes[-1]["body"], {"fence": 2, "heard": {"text": "again"}})


@case("a worker does all the work of its lane")
def worker():
    ids = [belay("submit", "--lane", "mail", "--payload", text)["id"] for text in ("1", "22")]
    ran = subprocess.run([tap.BUILD / "examples/worker", STORE, "mail"], check=False,
                         stdout=subprocess.PIPE, text=True, timeout=60)
    same((ran.returncode, ran.stdout.split()), (0, ids))
    same([belay("result", i)["result"]["bytes"] for i in ids], [1, 2])


tap.main()
