#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026, the natagg authors

# tools_usage_test.sh NATAGG-ALLREDUCE NATAGG-REPORT NATAGG-TRACEGEN NATAGG-REPLAY: exit statuses and
# messages without a network.
set -u
failures=0

# expect STATUS TEXT COMMAND...: the command ends with STATUS and says TEXT.
expect() {
  status=$1 text=$2
  shift 2
  said=$("$@" 2>&1)
  got=$?
  case $got:$said in
    "$status":*"$text"*) ;;
    *) echo "$* : status $got, not $status; or no \"$text\" in: $said"; failures=1 ;;
  esac
}

allreduce=$1 report=$2 tracegen=$3 replay=$4
odd=$(mktemp)
trace=$(mktemp)
trap 'rm -f "$odd" "$trace"' EXIT
printf 1234567 > "$odd"
expect 0 "--aggregators" "$allreduce" --help
expect 0 "natagg " "$allreduce" --version
expect 2 "aggregators" "$allreduce"
expect 2 "give --input or --count" "$allreduce" --aggregators 127.0.0.1
expect 2 "unrecognised" "$allreduce" --no-such-option
expect 2 "--rounding is" "$allreduce" --aggregators 127.0.0.1 --count 1 --rounding up
expect 2 '--type is float32' "$allreduce" --aggregators 127.0.0.1 --count 1 --type int8
expect 2 "--check is for generated" "$allreduce" --aggregators 127.0.0.1 --input x --check
expect 2 "3 files for 2 ranks" "$allreduce" --aggregators 127.0.0.1 --count 1 --world 2 \
  --check-inputs a b c
expect 1 "no-such-file: No such file" "$allreduce" --aggregators 127.0.0.1 --input no-such-file
expect 1 "window: 3 is not" "$allreduce" --aggregators 127.0.0.1 --count 1 --window 3
expect 1 '"status": -1' "$allreduce" --aggregators box --count 1 --json
expect 1 '"type": "bfloat16"' "$allreduce" --aggregators box --count 1 --json --type bfloat16
expect 1 "7 bytes are no whole number of float64" "$allreduce" --aggregators 127.0.0.1 \
  --type float64 --input "$odd"
expect 0 "--result" "$report" --help
expect 2 "result" "$report" --inputs x
expect 1 "no-such-file" "$report" --inputs no-such-file --result no-such-file
expect 0 "--output" "$tracegen" --help
expect 2 "output" "$tracegen" --world 2
expect 2 "--rounding is" "$tracegen" --output "$trace" --rounding up
expect 1 "no-such-file: No such file" "$tracegen" --output "$trace" --input no-such-file
expect 1 "window is 3, must be" "$tracegen" --output "$trace" --window 3
expect 1 "cannot write the trace /no/trace" "$tracegen" --output /no/trace
expect 0 "packets in" "$tracegen" --output "$trace" --count 10000
expect 0 "--recorded-speed" "$replay" --help
expect 2 "give a trace" "$replay"
expect 2 "give --shard or --to" "$replay" "$trace" --shard --to 127.0.0.1
expect 2 "give --recorded-speed or --rate" "$replay" "$trace" --recorded-speed --rate 5
expect 2 '"box"' "$replay" "$trace" --to box
expect 2 "need --to" "$replay" "$trace" --transport ethdev:net_ring0
expect 1 "is neither udp, memif:PATH" "$replay" "$trace" --to 127.0.0.1 --transport tcp
expect 1 "cannot read the trace" "$replay" no-such-file
expect 1 "cannot read the trace" "$replay" "$odd"
expect 0 "8 chunks answered, 0 wrong packets, 0 missing" "$replay" "$trace"
expect 0 '"answers": {"right": 16, "wrong": 0, "missing": 0}' "$replay" "$trace" --json --loop 2
printf x | dd of="$trace" bs=1 seek=$(($(wc -c < "$trace") - 2000)) conv=notrunc status=none
expect 1 "RESULT, sequence" "$replay" "$trace"
exit $failures
