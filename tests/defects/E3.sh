# Temporary files of processes that were killed are removed by the next one; those in use are not.
exec 2>&1
scan=$DATA/vectors/mscan/two-sequences.mscan
tool=$(dirname "$(command -v coffer)")/tests/coffer-interrupted
export COFFER_TEST_SIGNAL=9
for point in 2 4; do
    COFFER_TEST_INTERRUPT=$point "$tool" convert "$scan" rows.csv >/dev/null
    ls -A | sed 's/\.[0-9a-v]*\.tmp/.RANDOM.tmp/'
    echo "-- next"
    coffer convert "$scan" rows.csv
    ls -A
    rm -f rows.csv
done
echo "files that only look like it, or belong to another name, or are in use, stay"
for name in .rows.csv.tmp .rows.csv.1234567.tmp .rows.csv.1234567Z.tmp .other.csv.12345678.tmp .rows.csv.12345678.tmp.x; do
    echo keep >$name
done
echo stale >.rows.csv.87654321.tmp
flock .rows.csv.12345678.tmp -c "coffer convert '$scan' rows.csv"
ls -A
