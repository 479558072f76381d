# Snapshots of Python's tracemalloc are read as data: nothing in them is executed.
exec 2>&1
say() {
    echo "\$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
python3 "$DATA/support/tracemalloc_snapshot.py" .
say info p5.tracemalloc
say check p5.tracemalloc
say leaks p5.tracemalloc
say stats p5.tracemalloc --by function --what leaks --top 2 | tail -5
coffer convert p5.tracemalloc p5.mlyze
say check p5.mlyze
coffer leaks p5.tracemalloc --json -q 2> /dev/null | sed 's/p5\.tr/X.tr/' > one
for file in p2 p3 p4 three; do
    coffer leaks $file.tracemalloc --json 2> /dev/null | sed "s/$file\.tr/X.tr/" > two
    cmp one two && echo "$file: the same"
done
gzip -k p5.tracemalloc
coffer leaks p5.tracemalloc.gz --by function
coffer leaks two.tracemalloc --by function
coffer leaks many.tracemalloc --by function | head -3
say leaks empty.tracemalloc
say info wrong.tracemalloc
say info evil.tracemalloc
say convert evil.tracemalloc evil.mlyze
head -c 150 p5.tracemalloc > cut.tracemalloc
say check cut.tracemalloc
