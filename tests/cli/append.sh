# Sequences of other scans and of tables, added in place.
exec 2>&1
scans=$DATA/vectors/mscan
cp "$scans/two-sequences.mscan" all.mscan
printf 'token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,100,200\n1,3,1,5,6\n' >rows.csv
printf '{"token_idx": 2, "param_name": "model.norm.weight", "block_idx": 0, "activation": 7, "grad_norm": 8}\n' >rows.jsonl
coffer append all.mscan rows.csv --source 'Hi there' --tokens 5
coffer append all.mscan rows.jsonl
coffer append all.mscan "$scans/two-sequences.mscan"
cp all.mscan copy.mscan
coffer append all.mscan copy.mscan
coffer ls all.mscan
coffer ls all.mscan --what params | tail -2
coffer check --full all.mscan
coffer stats all.mscan --by block
echo "what does not fit leaves the file as it was"
cp all.mscan before.mscan
coffer append all.mscan "$scans/truncated-records.mscan"
echo "exit $?"
coffer append all.mscan "$scans/unknown-param.mscan"
echo "exit $?"
printf 'token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,70000,0\n' >large.csv
coffer append all.mscan large.csv
echo "exit $?"
coffer append all.mscan no-such-file.csv
echo "exit $?"
coffer append - rows.csv <all.mscan
echo "exit $?"
coffer append "$scans/bad-json.mscan" rows.csv
echo "exit $?"
coffer convert rows.csv scaled.mscan --quantize
coffer append all.mscan scaled.mscan
echo "exit $?"
cmp all.mscan before.mscan && echo "as it was"
echo "a table in a pipe"
coffer append all.mscan - <rows.csv
echo "exit $?"
coffer append all.mscan - --from csv <rows.csv
name=$(printf 'color\033[31m.mscan')
cp before.mscan "$name"
coffer append "$name" before.mscan
coffer append "$name" rows.csv --json
rm "$name"
ls -A
