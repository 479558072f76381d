# Statistics of a scan: the whole, and by parameter, block, token and sequence.
here=$PWD
cd "$DATA/vectors/mscan"
coffer stats two-sequences.mscan
coffer stats two-sequences.mscan --by block
coffer stats two-sequences.mscan --by sequence --metric grad_norm
coffer stats two-sequences.mscan --by token --top 3
coffer stats two-sequences.mscan --by token --tokens 5..9 --top 0
coffer stats two-sequences.mscan --by param --param '*.k_proj.*' --sequence 1 --sort std
coffer stats two-sequences.mscan --tokens 7.. --sequence 0
echo "nothing selected: exit $?"
echo "the records at an odd offset, and behind spaces, give the same"
for file in compact-json padded-json; do
    coffer stats $file.mscan --csv >"$here/$file.csv"
done
cmp "$here/compact-json.csv" "$here/padded-json.csv"
coffer stats empty.mscan
coffer stats ../../compat/mscan/scanner-io-two-appends.mscan | tail -2
