# convert takes the conditions of get and split.
printf '{"id":1,"text":"one","score":0.5}\n{"id":2,"text":"two words","score":1.5}\n{"id":3,"text":"three","score":2.5}\n' >rows.jsonl
coffer convert rows.jsonl set.mldf
coffer convert set.mldf - --to jsonl --where 'score>=1'
coffer convert set.mldf - --to csv --where 'score>=1' --where 'text~th*'
coffer convert set.mldf - --to csv --where 'score>=1' --samples 0..2
coffer convert set.mldf out.npy --field score --where 'id!=2' && coffer get out.npy
coffer convert set.mldf out.tar --where 'id=3' && tar -tf out.tar | grep -v schema
coffer convert set.mldf - --to csv --where 'id=9'
coffer convert set.mldf - --to csv --where 'other=1' 2>&1
echo "exit $?"
