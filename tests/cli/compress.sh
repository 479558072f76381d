# Compressed and plain have the same content.
exec 2>&1
cp "$DATA/vectors/mlyze/mixed.mlyze" t.mlyze
coffer compress t.mlyze -o packed.mlyze
coffer info packed.mlyze --json
coffer check --full packed.mlyze
coffer compress packed.mlyze --plain -o back.mlyze
cmp t.mlyze back.mlyze && echo "the file it was"
coffer compress t.mlyze -o packed.mlyze
echo "exit $?"
coffer compress t.mlyze -o packed.mlyze --level 12 --force --json
coffer compress t.mlyze
ls
coffer compress t.mlyze --plain
cmp t.mlyze back.mlyze && echo "the same in place"
ls
coffer compress back.mlyze --plain -o - | cmp - back.mlyze && echo "and to a pipe"

say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
say compress
say compress -
say compress missing.mlyze
say compress t.mlyze --plain --level 3
say compress t.mlyze --level 13
say compress "$DATA/vectors/mlyze/version-2-extension-event.mlyze" --plain -o x.mlyze
say compress "$DATA/vectors/mlyze/truncated-event.mlyze" -o x.mlyze
say compress "$DATA/vectors/mscan/two-sequences.mscan" -o x.mscan
ls
