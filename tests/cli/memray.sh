# Captures of memray are read without memray: events, stacks with lines of Python, threads, mappings.
exec 2>&1
say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
python3 "$DATA/support/memray_capture.py" .
say info new.memray
say check new.memray
say peak new.memray
say leaks new.memray
coffer stats new.memray | sed -n '/threads/,/worker/p'
coffer convert new.memray new.mlyze
say check new.mlyze
coffer leaks new.memray --json | sed 's/new\.memray/X/' > one
for file in lz4 python310 python39 killed; do
    coffer leaks $file.memray --json | sed "s/$file\.memray/X/" > two
    cmp one two && echo "$file: the same"
done
say convert killed.memray killed.mlyze
say check killed.memray
say check cut.memray
say convert cut.memray cut.mlyze
say convert cut.memray cut.mlyze --partial
say info old.memray
say convert aggregated.memray a.mlyze
