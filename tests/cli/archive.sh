# An archive has the same events, names and answers as the trace that it was made from.
# Sizes depend on the version of zstd, so numbers are left out where they follow from them.
exec 2>&1
cp "$DATA/vectors/mlyze/mixed.mlyze" t.mlyze
say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
about() {
    echo "\$ coffer $*"
    coffer "$@" > about.out
    code=$?
    sed 's/[0-9a-f]*[0-9][0-9a-f]*/N/g' about.out
    echo "exit $code"
}
coffer compress t.mlyze --archive -o a.mlyze | grep -v bytes | sed 's/:.*//'
coffer info a.mlyze | grep -E 'form  |flags|events  |allocs|blocks'
say check --full a.mlyze
coffer compress a.mlyze --plain -o back.mlyze > /dev/null
cmp t.mlyze back.mlyze && echo "the file it was"
coffer compress t.mlyze -o b.mlyze > /dev/null
coffer compress a.mlyze -o c.mlyze > /dev/null
cmp b.mlyze c.mlyze && echo "the same blocks"
coffer compress a.mlyze --archive --level 19 -o d.mlyze > /dev/null
for verb in stats peak leaks temporaries timeline ls; do
    coffer $verb b.mlyze --json | sed 's/b\.mlyze/X/' > one
    coffer $verb a.mlyze --json | sed 's/a\.mlyze/X/' > two
    cmp one two && echo "$verb: the same"
done
say diff b.mlyze d.mlyze
coffer get a.mlyze stack_traces.0 > one
coffer get b.mlyze stack_traces.0 > two
cmp one two && echo "the same stack"
say compress t.mlyze --archive --plain
say compress t.mlyze --archive --level 20

# A damaged block loses its events, and says so; damaged tables lose names and no events.
size=$(wc -c < a.mlyze)
cp a.mlyze bad.mlyze
printf '\377' | dd of=bad.mlyze bs=1 seek=$((size - 2)) conv=notrunc status=none
about check --full bad.mlyze
about repair bad.mlyze -o saved.mlyze
about check saved.mlyze
cp a.mlyze bad.mlyze
printf '\377\377\377\377' | dd of=bad.mlyze bs=1 seek=340 conv=notrunc status=none
about repair bad.mlyze -o names.mlyze
coffer stats names.mlyze --json | grep -o '"events":[0-9]*'
coffer stats a.mlyze --json | grep -o '"events":[0-9]*'

# Conversions write archives too.
printf 'main;a 3\nmain;b 5\n' > s.collapsed
say convert s.collapsed s.mlyze --archive
coffer info s.mlyze | grep form
