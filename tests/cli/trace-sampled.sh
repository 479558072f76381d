# Sums of a sampled trace are estimates: every verb states the interval that has the truth with 95 % probability.
# One block for every 1024 bytes: n blocks are off by at most 1.96 * 1024 * sqrt(n) bytes, 10035 for the 25 blocks
# at the peak, 8028 for the 16 of load, 6021 for the 9 of keep, which are not freed.
exec 2>&1
tables='{"stack_traces":{"0":[{"file_id":0,"line":1,"func_id":0}],"1":[{"file_id":0,"line":2,"func_id":1}]},'
tables="$tables"'"files":{"0":"a.c"},"functions":{"0":"load","1":"keep"},"sampling_bytes":1024}'
{
    printf 'MTRC\1\0\0\0\0\0\0\0\0\0\0\0'
    printf "\\$(printf %o ${#tables})\0\0\0"
    head -c 236 /dev/zero
    printf %s "$tables"
    i=1
    while [ $i -le 25 ]; do
        printf "\0\1\\$(printf %o $i)\0\0\0\0\0\0\0\200\10\\$((i > 16))\0\0" # 1024 bytes
        i=$((i + 1))
    done
    i=1
    while [ $i -le 16 ]; do
        printf "\1\1\\$(printf %o $i)\0\0\0\0\0\0\0"
        i=$((i + 1))
    done
} > s.mlyze
say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
coffer info s.mlyze | grep -E 'sampling|allocated|allocs'
say stats s.mlyze --by stack
coffer stats s.mlyze --json | grep -o '"[a-z_]*\(error\|sampling\)_bytes":[0-9]*'
say peak s.mlyze
coffer peak s.mlyze --json | grep -o '"[a-z_]*\(error\|sampling\)_bytes":[0-9]*'
say peak s.mlyze --at 16
say leaks s.mlyze --by function
coffer leaks s.mlyze --json | grep -o '"[a-z_]*\(error\|sampling\)_bytes":[0-9]*'
coffer flame s.mlyze --json | grep -o '"error_bytes":[0-9]*'
say flame s.mlyze
coffer flame s.mlyze -o s.svg
grep -o 's.mlyze: live[^<]*' s.svg | head -1
