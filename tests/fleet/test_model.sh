#!/usr/bin/env bash
# The words of the contest, in every order of their steps (contest.pml), and a reset among
# claims (reset.pml), by spin; and the same with one rule of the protocol taken out at a time,
# which spin must then object to.
#
# BELAY_MODEL=long checks larger bounds (minutes, 4 GB).
# shellcheck disable=SC2317 # the cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

model=contest # or reset

# search NAME LEVEL SPIN_OPTION...: in a directory of its own; what pan says is in NAME/said.
search() {
    local name=$1 flags=$2 fairness=()
    mkdir "$name"
    cd "$name"
    if [[ " ${*:3} " == *' -DLIVE '* ]]; then
        fairness=(-a -f)
    else
        flags+=' -DSAFETY -DNOFAIR'
    fi
    spin "${@:3}" -a "$root/tests/fleet/$model.pml" >said
    # shellcheck disable=SC2086 # a list of flags
    gcc -w $flags -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c
    ./pan -m1000000 -w22 "${fairness[@]}" >said 2>&1
    cd ..
}

# holds NAME SPIN_OPTION...: the whole space is searched and nothing is wrong in it.
holds() {
    search "$1" -O2 "${@:2}"
    grep -q 'errors: 0$' "$1/said" || {
        cat "$1/said"
        return 1
    }
    if grep -qE 'Search not completed|max search depth too small' "$1/said"; then
        cat "$1/said"
        return 1
    fi
}

# breaks MUTANT SPIN_OPTION...: with that rule taken out, an assertion is violated.
breaks() {
    search "$1" -O0 "-DMUTANT_$1" "${@:2}"
    grep -q 'assertion violated' "$1/said" || {
        echo "MUTANT_$1 is not caught"
        return 1
    }
}

two='-DN=2 -DOPS=3'
# shellcheck disable=SC2086 # lists of options
{
    check 'three members: exclusion, deaths and time, two operations' \
        holds three -DN=3 -DOPS=2 -DKILLS=1 -DTICKS=1
    check 'three members contend while time passes, three operations' \
        holds time -DN=3 -DOPS=3 -DKILLS=0 -DTICKS=1
    check 'two members, deaths, time, and the log replayed' \
        holds log $two -DKILLS=1 -DTICKS=1 -DLOG
    check 'sweeps, deaths and resets at once' \
        holds sweep -DN=2 -DOPS=2 -DSWEEPS -DKILLS=1 -DTICKS=0 -DRESETS=1 -DLOG
    check 'two deaths in a row' holds deaths -DN=2 -DOPS=2 -DSWEEPS -DKILLS=2 -DTICKS=0
    check 'a tag of D that comes round makes no second holder' \
        holds wrap -DN=2 -DOPS=4 -DKILLS=0 -DTICKS=0 -DRESETS=1 -DWRAP
    check 'a dead owner is always followed by a free word, though no time passes' \
        holds live $two -DKILLS=1 -DTICKS=0 -DLIVE
    if [[ ${BELAY_MODEL-} == long ]]; then
        check 'long: three members, deaths' holds long1 -DN=3 -DOPS=3 -DKILLS=1 -DTICKS=0
        check 'long: a dead owner, three members' \
            holds long5 -DN=3 -DOPS=2 -DKILLS=1 -DTICKS=0 -DLIVE
        check 'long: two members, two ticks' holds long2 -DN=2 -DOPS=4 -DKILLS=1 -DTICKS=2
        check 'long: sweeps and resets' \
            holds long3 $two -DSWEEPS -DKILLS=1 -DTICKS=1 -DRESETS=1
        check 'long: tags come round while time passes' \
            holds long4 -DN=2 -DOPS=5 -DKILLS=0 -DTICKS=1 -DRESETS=1 -DWRAP
    fi

    check 'seen: an expired tenure is taken without revoking its deadline' \
        breaks NO_REVOKE $two -DKILLS=0
    check 'seen: the hint of a death is believed without asking the kernel' \
        breaks NO_CONFIRM $two -DTICKS=0
    check 'seen: D is stored, not compared and swapped' breaks STORE_D $two -DKILLS=0
    check 'seen: a claimer that was revoked sets D again without a look at O' \
        breaks RETRY_UNSEEN $two -DKILLS=0
    check 'seen: a stalled claim is revoked without a second look at O' \
        breaks GRACE_UNSEEN -DN=3 -DOPS=3 -DKILLS=0
    check 'seen: a yield names a holder without a second look at O' \
        breaks YIELD_UNSEEN $two -DTICKS=0
    check 'seen: holders share a record' breaks SHARED_RECORD -DN=3 -DOPS=3 -DKILLS=0 -DTICKS=0
    check 'seen: a takeover is not in the log' breaks SILENT_TAKEOVER $two -DLOG -DTICKS=0
    check 'seen: a renewal trusts the tag of D alone' \
        breaks BLIND_RENEW -DN=2 -DOPS=4 -DKILLS=0 -DTICKS=0 -DRESETS=1 -DWRAP
    check 'seen: a claim takes a generation whose tag D has already' \
        breaks TAG_COMES_ROUND -DN=2 -DOPS=4 -DKILLS=0 -DTICKS=1 -DRESETS=1 -DWRAP
    check 'seen: a release does not look whose tenure it is' breaks BLIND_RELEASE $two -DKILLS=0
    check 'seen: a reset keeps the generation' \
        breaks RESET_KEEPS_GENERATION -DN=3 -DOPS=3 -DKILLS=0 -DTICKS=0 -DRESETS=1
    check 'seen: a reset begins tokens anew' \
        breaks RESET_REWINDS_TOKEN $two -DKILLS=0 -DTICKS=0 -DRESETS=1
    check 'seen: a sweep trusts the number of a member' \
        breaks SWEEP_TRUSTS_NUMBER $two -DSWEEPS -DTICKS=0
    check 'seen: a slot is given away before it is swept' \
        breaks REUSE_BEFORE_SWEEP $two -DTICKS=0

    model=reset
    check 'a reset among claims and a death: who holds when it is over is in the log' \
        holds reset -DN=2 -DOPS=2 -DKILLS=1
    check 'two resets at once: the floor of the log never falls' \
        holds resets -DN=1 -DOPS=1 -DKILLS=0
    if [[ ${BELAY_MODEL-} == long ]]; then
        check 'long: a reset among claims, three operations' holds long6 -DN=2 -DOPS=3 -DKILLS=1
        check 'long: two resets, a claim, a release and a death' \
            holds long7 -DN=1 -DOPS=2 -DKILLS=1
    fi
    check 'seen: a reset frees before it empties the log' breaks FREE_FIRST -DOPS=2 -DKILLS=0
    check 'seen: a reset does not raise the floor' breaks FLOOR_KEPT -DOPS=2 -DKILLS=0
    check 'seen: a reset that was slow sets the floor back' \
        breaks FLOOR_STORED -DN=1 -DOPS=1 -DKILLS=0
    check 'seen: the epoch rises before the floor' breaks EPOCH_FIRST -DOPS=2 -DKILLS=0
    check 'seen: a reset takes a subject and does not say so' \
        breaks FREED_SILENTLY -DOPS=2 -DKILLS=0
    check 'seen: a claim that a reset has taken is granted' \
        breaks GRANT_UNSEEN -DOPS=2 -DKILLS=0
}
finish
