#!/usr/bin/env bash
# The third ring: night.sh MINUTES [SEED]. It plays seeds that nobody has played, kills servers, makes
# calls and machines fail, and runs what takes too long for a gate. Seeds, kills, the soak and faults
# of a cell have shares of the time. The other parts go by counts, so a night of a few minutes takes
# longer; the longest of them are left out of short nights. Each part has a log below bin/night.
set -uo pipefail
cd "$(dirname "$0")/.."
minutes=$1 seed=${2:-$(($(od -An -N4 -tu4 /dev/urandom)))}
[[ $minutes =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]] || {
	echo "MINUTES is \"$minutes\" and SEED \"$seed\": whole numbers are expected, as in make night MINUTES=50 SEED=7" >&2
	exit 2
}
logs=bin/night
mkdir -p $logs
failed=()
echo "the same again: make night MINUTES=$minutes SEED=$seed"

# percent is a share of the night in seconds.
percent() { echo $((minutes * 60 * $1 / 100)); }

# part NAME COMMAND... runs a part, and tells how it went.
part() {
	local name=$1 begun=$SECONDS how=good
	shift
	"$@" >$logs/$name.log 2>&1 || { how="FAILED: see $logs/$name.log" failed+=("$name"); }
	printf '%-16s %6d s  %s\n' "$name" $((SECONDS - begun)) "$how"
	grep -ho '[0-9]* seeds were played' $logs/$name.log
	[[ $how == good ]] || grep -hE -m 5 '^ *--- FAIL|seed [0-9]+ (of|fails)|operation [0-9]+ of seed' $logs/$name.log
}

# from NEEDED PART... runs a part in nights of that many minutes.
from() {
	local needed=$1
	shift
	if ((minutes < needed)); then
		printf '%-16s left out: it needs MINUTES=%d\n' "$1" "$needed"
	else
		part "$@"
	fi
}

# repeat SECONDS COMMAND... repeats a command until so many seconds are over, or it fails.
repeat() {
	local end=$((SECONDS + $1))
	shift
	until ((SECONDS >= end)); do "$@" || return 1; done
}

# simulate SECONDS plays seeds of the store and of the server beside each other.
simulate() {
	local new=(-run '^TestSimulation$' -timeout 0 -v -args -sim.file /dev/null -sim.seeds 0 -sim.from "$seed" -sim.for "$1s")
	go test ./storage "${new[@]}" &
	go test ./fuzz/sim "${new[@]}"
	local server=$?
	wait $! && return $server
}

runs=0
kill_servers() {
	go test ./fuzz/crash -run 'TestCrash$' -cycles 10 -seed $((seed + runs++)) -timeout 0 -v
}

rooms=$(grep -rl 'storage/inject"$' --include=*_test.go . | xargs -n1 dirname | sort -u)
part simulations simulate "$(percent 40)"
part draws env RAPID_SEED="$seed" go test $rooms -timeout 0 -args -sample "$seed"
part shuffled env RAPID_SEED="$seed" go test ./broker ./index/... ./netproto/... ./recovery/... -shuffle "$seed"
part planted go test ./fuzz/planted ./fuzz/sim -run '^(TestPlantedBugsAreFound|TestMutantsAreFound)$' -v
part crash repeat "$(percent 10)" kill_servers
part sweep make sweep SWEEP="$((minutes < 100 ? 100 : minutes)) -sample $seed"
part linear go test ./fuzz/redis -run 'SeeOneOrder$' -histories $((minutes * 10)) -seed "$seed" -timeout 0
part fuzz make fuzz FUZZTIME=$((minutes * 400))x
part soak make soak DURATION="$(percent 5)s"
part cluster go test ./fuzz/cluster -cycles 1 -composed "$(percent 8)s" -seed "$seed" -timeout 0 -v
from 120 attack make attack holds
from 120 doors make doors
from 120 redis-suite make redis-suite
from 240 cells go test ./fuzz/cluster -run '^TestPlantedBugsAreFound' -planted -timeout 0 -v
part harness go test ./fuzz/crash -run HarnessCatchesPlantedBugs -timeout 0 -v
from 240 celery-suite make celery-suite

if ((${#failed[@]})); then
	echo "make night: ${#failed[@]} of the parts failed: ${failed[*]}. A seed that failed goes into testdata/seeds.txt of its room" >&2
	exit 1
fi
