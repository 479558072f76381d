# One deleted sample is one difference; the header is compared on request.
for i in 0 1 2 3 4 5 6 7; do
    printf '{"path": "%s.txt", "caption": "number %s", "score": %s.5}\n' $i $i $i
done >list.jsonl
coffer convert list.jsonl a.mldf
cp a.mldf b.mldf
coffer delete b.mldf 3
coffer set b.mldf 5.score=100
coffer diff a.mldf b.mldf
echo "exit $?"
coffer diff a.mldf b.mldf --json
echo "# without names, by content"
for set in a b; do
    coffer convert $set.mldf - --to jsonl --field caption --field score >$set.jsonl
    coffer convert $set.jsonl $set-unnamed.mldf
done
coffer diff a-unnamed.mldf b-unnamed.mldf
echo "# moved"
(tail -n 1 list.jsonl; head -n 7 list.jsonl) >moved.jsonl
coffer convert moved.jsonl moved.mldf
coffer diff a.mldf moved.mldf
echo "# the header"
cp a.mldf c.mldf
coffer set c.mldf 0.score=7.5
coffer set c.mldf 0.score=0.5
coffer diff a.mldf c.mldf
coffer diff a.mldf c.mldf --header | grep -E 'same|header' | cut -c 1-35
coffer diff a.mldf c.mldf --align nothing
echo "exit $?"
