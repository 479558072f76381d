# Token by token, without escapes in a pipe.
cd "$DATA/vectors/mscan"
coffer replay two-sequences.mscan --from 5 --to 8 --top 3
coffer replay two-sequences.mscan --backwards --to 11 --by block --metric grad_norm
coffer replay two-sequences.mscan -b --from 7 --to 6 -n 1
coffer replay tokens-without-records.mscan --from 20 --to 21
coffer replay empty.mscan
coffer replay two-sequences.mscan --from 8 --to 5
echo "exit $?"
coffer replay two-sequences.mscan --from 12
echo "exit $?"
COLUMNS=60 coffer replay two-sequences.mscan --to 0 --top 2
