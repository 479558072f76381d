# What can be taken out of a scan.
cd "$DATA/vectors/mscan"
coffer get two-sequences.mscan --tokens 11 --param '*.5.*'
coffer get two-sequences.mscan activation --as jsonl --tokens 0 --param '*.5.*'
coffer get two-sequences.mscan records --as raw --tokens 0 | wc -c
coffer get two-sequences.mscan grad_norm --as npy | head -c 70 | tail -c 60; echo
coffer get two-sequences.mscan model_name
coffer get two-sequences.mscan model_name --as json
coffer get two-sequences.mscan sequences.0.source --as raw; echo
coffer get two-sequences.mscan metadata.id_to_param_name_map.3
coffer get two-sequences.mscan sequences --as csv | cat -A | head -3
coffer get two-sequences.mscan params --as jsonl | tail -1
coffer get two-sequences.mscan params -o "$OLDPWD/p.csv" && tail -1 "$OLDPWD/p.csv"
coffer get truncated-records.mscan model_name
coffer get two-sequences.mscan metadata --as raw | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["sequences"]))'
coffer get two-sequences.mscan nonsense
echo "exit $?"
coffer get two-sequences.mscan model_name --tokens 1
echo "exit $?"
coffer get two-sequences.mscan model_name --as npy
echo "exit $?"
coffer get two-sequences.mscan --as json
echo "exit $?"
coffer get "$DATA/vectors/mscan/two-sequences.mscan" params -o params.npy
echo "exit $?"
coffer get "$DATA/vectors/mscan/two-sequences.mscan" params --as raw
echo "exit $?"
test ! -e params.npy && echo "no file of the wrong kind"
