#!/usr/bin/env bash
# tests/run counts, judges, cleans up and reports as it says.
# shellcheck disable=SC2317,SC2016 # cases are called by name; scripts are passed on
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

here=$PWD
cat >declare.py <<'END'
# declare.py SCRIPT [FIELD=JSON]...: a file that declares one shell script as a test.
import json, sys
test = {"name": "planted.x", "cmd": ["bash", "-c", sys.argv[1]], "suite": ["belay:plain"],
        "timeout": 20, "is_parallel": True, "env": {}, "workdir": None}
test |= {field: json.loads(value) for field, _, value in
         (argument.partition("=") for argument in sys.argv[2:])}
print(json.dumps({"plain": [test]}))
END

# planted STATUS LAST TEXT SCRIPT [FIELD=JSON]...: how the runner ends, its last line,
# and something that it says.
planted() {
    local status=0 got
    python3 declare.py "${@:4}" >declared.json
    "$root/tests/run" --declarations declared.json >report 2>&1 || status=$?
    got=$(tail -n 1 report)
    if [[ $status -ne $1 || $got != "$2" ]] || ! grep -qF -- "$3" report; then
        echo "wanted status $1, last line '$2' and: $3; got status $status and:"
        cat report
        return 1
    fi
}

# dead FILE: the process whose number is in the file has ended, or does so soon.
dead() {
    local pid tries
    pid=$(<"$1")
    for tries in {1..50}; do
        if ! grep -qs '^State:[[:space:]][^ZX]' "/proc/$pid/status"; then
            return 0
        fi
        sleep 0.1
    done
    echo "process $pid is alive after $tries looks"
    return 1
}

# Counting
check 'cases that pass' planted 0 '2 passed, 0 failed' 'ok   planted.x' \
    'echo "ok 1 - a"; echo "ok 2 - b"; echo 1..2'
check 'a plan may come first' planted 0 '1 passed, 0 failed' planted.x 'echo 1..1; echo ok'
check 'a failed case is named, the program is not counted again' \
    planted 1 '1 passed, 1 failed' 'FAILED planted.x (plain): b is so' \
    'echo "ok 1 - a"; echo "not ok 2 - b is so"; echo 1..2; exit 1'
check 'a failed case counts when the exit status does not tell' \
    planted 1 '0 passed, 1 failed' 'FAILED' 'echo "not ok 1 - a"; echo 1..1'
check 'the output of a failed program is shown, both streams' \
    planted 1 '0 passed, 1 failed' 'said on the side' \
    'echo said on the side >&2; echo "not ok 1 - a"; echo 1..1'
check 'a crash' planted 1 '1 passed, 1 failed' 'killed by signal 11' \
    'echo "ok 1 - a"; echo 1..1; kill -SEGV $$'
check 'a non-zero exit without a failed case' \
    planted 1 '1 passed, 1 failed' 'no failed case, exit status 3' \
    'echo "ok 1 - a"; echo 1..1; exit 3'
check 'fewer cases than planned' planted 1 '1 passed, 1 failed' 'planned 2 cases, ran 1' \
    'echo 1..2; echo "ok 1 - a"'
check 'more cases than planned' planted 1 '2 passed, 1 failed' 'planned 1 cases, ran 2' \
    'echo 1..1; echo "ok 1 - a"; echo "ok 2 - b"'
check 'no plan' planted 1 '1 passed, 1 failed' 'no plan' 'echo "ok 1 - a"'
check 'two plans' planted 1 '1 passed, 1 failed' 'more than one plan' \
    'echo 1..1; echo "ok 1 - a"; echo 1..1'
check 'no output' planted 1 '0 passed, 1 failed' 'no plan' true
check 'a plan of no case' planted 1 '0 passed, 1 failed' 'no case' 'echo 1..0'
check 'a bail-out' planted 1 '1 passed, 1 failed' 'Bail out! no disk' \
    'echo 1..2; echo "ok 1 - a"; echo "Bail out! no disk"; echo "ok 2 - b"; exit 1'
check 'a skipped case' planted 1 '1 passed, 1 failed' 'skipped: b # SKIP not here' \
    'echo "ok 1 - a"; echo "ok 2 - b # SKIP not here"; echo 1..2'
check 'a program that cannot be started' \
    planted 1 '0 passed, 1 failed' 'did not start' true 'cmd=["./missing"]'
check 'what looks like TAP on standard error does not count' \
    planted 1 '0 passed, 1 failed' 'no plan' 'echo "ok 1 - a" >&2; echo 1..1 >&2'

# Processes and surroundings
hangs() {
    planted 1 '1 passed, 1 failed' 'exceeded its budget of 1 s' \
        "echo 'ok 1 - a'; sleep 300 & echo \$! >$here/child; echo 1..1; wait" timeout=1 &&
        dead child
}
leaves_child() {
    planted 0 '1 passed, 0 failed' planted.x \
        "sleep 300 & echo \$! >$here/child; echo 'ok 1 - a'; echo 1..1" && dead child
}
interrupted() {
    local script="echo \$\$ >$here/child; sleep 300 & wait" runner began=$SECONDS
    rm -f child
    python3 declare.py "$script" timeout=30 >declared.json
    "$root/tests/run" --declarations declared.json >report 2>&1 &
    runner=$!
    while [[ ! -s child ]]; do sleep 0.05; done
    kill -TERM "$runner"
    ! wait "$runner" && dead child && ((SECONDS - began < 15))
}
own_directory() {
    planted 0 '1 passed, 0 failed' planted.x \
        "touch kept && [[ \$PWD == \$TMPDIR ]] && pwd >$here/where && echo ok; echo 1..1" &&
        [[ -n $(<where) && $(<where) != "$here" && ! -e $(<where) ]]
}
alone() {
    python3 - >declared.json <<'END'
import json, os
script = f'cd {os.getcwd()}; mkdir lock && sleep 0.2 && rmdir lock && echo ok; echo 1..1'
print(json.dumps({"plain": [
    {"name": f"alone.{i}", "cmd": ["bash", "-c", script], "suite": ["belay:plain"],
     "timeout": 20, "is_parallel": False} for i in range(3)]}))
END
    says 0 '3 passed, 0 failed' "$root/tests/run" --declarations declared.json
}

check 'a program that hangs is killed with its children' hangs
check 'a child that outlives its program is killed' leaves_child
check 'an interrupted run leaves no process' interrupted
check 'a program has a directory of its own, removed afterwards' own_directory
check 'the roots are in the environment' planted 0 '1 passed, 0 failed' planted.x \
    "[[ \$BELAY_SOURCE_ROOT == $root && \$BELAY_BUILD_ROOT == $root/build ]] && echo ok
    echo 1..1"
check 'the declared environment counts' planted 0 '1 passed, 0 failed' planted.x \
    '[[ $COLOUR == green ]] && echo ok; echo 1..1' 'env={"COLOUR": "green"}'
BELAY_STORE=mine check "the caller's settings do not reach a test" \
    planted 0 '1 passed, 0 failed' planted.x \
    '[[ -z ${BELAY_STORE+set} ]] && echo ok; echo 1..1'
check 'sanitizers are told to stop at a finding' \
    planted 0 '1 passed, 0 failed' planted.x \
    'case $ASAN_OPTIONS:$UBSAN_OPTIONS:$TSAN_OPTIONS in
    *halt_on_error=1*halt_on_error=1*halt_on_error=1*) echo ok ;; esac; echo 1..1'
check 'programs that are not parallel run one at a time' alone

# Servers
needs='env={"BELAY_NEEDS": "postgres"}'
asks='[[ $(psql -qAtc "SHOW fsync" "$BELAY_TEST_POSTGRES") == on ]] && echo ok; echo 1..1'
unset BELAY_TEST_POSTGRES BELAY_TEST_VALKEY
no_server() {
    dead server && ! psql -qAtc 'SELECT 1' "$(<url)" >/dev/null 2>&1
}
# The postmaster's number is in the first line of a file of its data folder.
writes="echo \$BELAY_TEST_POSTGRES >$here/url
    psql -qAtc \"SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)\" \\
    \$BELAY_TEST_POSTGRES >$here/server.new; mv $here/server.new $here/server"
serves() {
    planted 0 '1 passed, 0 failed' planted.x "$writes; $asks" "$needs" && no_server
}
serves_all() {
    python3 - >declared.json <<'END'
import json, os
script = 'echo ok; echo 1..1; echo "$BELAY_TEST_POSTGRES" >>' + os.getcwd() + '/urls'
print(json.dumps({"plain": [
    {"name": f"needs.{i}", "cmd": ["bash", "-c", script], "suite": ["belay:plain"],
     "timeout": 20, "is_parallel": False, "env": {"BELAY_NEEDS": "postgres"}}
    for i in range(3)]}))
END
    says 0 '3 passed, 0 failed' "$root/tests/run" --declarations declared.json &&
        [[ $(wc -l <urls) -eq 3 && $(sort -u urls | wc -l) -eq 1 ]]
}
serves_until_interrupted() {
    local runner
    rm -f server
    python3 declare.py "$writes; sleep 300" "$needs" timeout=60 >declared.json
    "$root/tests/run" --declarations declared.json >report 2>&1 &
    runner=$!
    while [[ ! -s server ]]; do sleep 0.05; done
    kill -TERM "$runner"
    ! wait "$runner" && no_server
}
serves_valkey() {
    planted 0 '1 passed, 0 failed' planted.x \
        "redis-cli -u \$BELAY_TEST_VALKEY INFO server | tr -d '\r' | sed -n s/^process_id://p >$here/server
        [[ \$(redis-cli -u \$BELAY_TEST_VALKEY CONFIG GET appendfsync) == *always ]] && echo ok; echo 1..1" \
        'env={"BELAY_NEEDS": "valkey"}' && dead server
}
check 'a test that needs postgres finds a server, which ends with the run' serves
check 'a test that needs valkey finds a server, which ends with the run' serves_valkey
check 'a server stays for the next test' serves_all
check 'an interrupted run leaves no server' serves_until_interrupted
check 'a test that needs none starts none' planted 0 '1 passed, 0 failed' planted.x \
    '[[ -z ${BELAY_TEST_POSTGRES+set} ]] && echo ok; echo 1..1'
BELAY_TEST_PGBIN=$here check 'without a server the test that needs it fails' \
    planted 1 '0 passed, 1 failed' 'postgres: initdb is not installed' 'echo ok; echo 1..1' \
    "$needs"
BELAY_TEST_POSTGRES=mine check "the caller's own server is used" \
    planted 0 '1 passed, 0 failed' planted.x \
    '[[ $BELAY_TEST_POSTGRES == mine ]] && echo ok; echo 1..1' "$needs"

# Selecting
good='echo ok; echo 1..1'
selects() {
    python3 declare.py "$good" >declared.json
    says "$1" "$2" "$root/tests/run" --declarations declared.json "$3"
}
check 'a part of the name selects' selects 0 '1 passed, 0 failed' nted
check 'a glob selects' selects 0 '1 passed, 0 failed' 'pl*.?'
check 'a pattern that selects nothing fails' selects 1 'nothing ran' other
check 'a suite of another build is not run here' \
    planted 1 '0 passed, 0 failed' 'nothing ran' "$good" 'suite=["belay:asan"]'

finish
