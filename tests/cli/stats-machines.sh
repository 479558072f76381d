# CSV and JSON: every number in full, keys that scripts rely on.
cd "$DATA/vectors/mscan"
coffer stats two-sequences.mscan --json
coffer stats two-sequences.mscan --json --by sequence
coffer stats two-sequences.mscan --json --by token --top 1
coffer stats two-sequences.mscan --json --by block --metric grad_norm --top 1
coffer stats ../../compat/mscan/scanner-io-two-appends.mscan --json --param 'layers.0.*'
coffer stats two-sequences.mscan --csv
coffer stats two-sequences.mscan --csv --by token --metric activation --tokens 6..8
coffer stats two-sequences.mscan --csv --by sequence --metric sps
cat two-sequences.mscan | coffer stats - --csv --by block --metric activation
