# The parts of a recording that was killed become the trace.
exec 2>&1
say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
cp "$DATA"/cli/recording/killed.mlyze.* .
say repair killed.mlyze
ls
say check --full killed.mlyze
say info killed.mlyze --json
say repair killed.mlyze

cp "$DATA"/cli/recording/killed.mlyze.* .
say repair killed.mlyze.part
say repair killed.mlyze.part -o elsewhere.mlyze
say repair killed.mlyze.part --force --json
ls

cp "$DATA"/cli/recording/killed.mlyze.part cut.part
head -c 200 cut.part > cut.mlyze.part
say repair cut.mlyze
rm cut.part
ls

echo "something else altogether" > other.mlyze.part
say repair other.mlyze
cp "$DATA/vectors/mscan/truncated-records.mscan" scan.mscan.part
say repair scan.mscan.part -o scan.mscan
