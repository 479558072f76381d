# z-scores and their difference: sps with its sum for any grouping, dsc by parameter.
cd "$DATA/vectors/mscan"
coffer stats two-sequences.mscan --metric sps
coffer stats two-sequences.mscan --metric sps --by block --scope layer
coffer stats two-sequences.mscan --metric dsc --sort dsc
coffer stats two-sequences.mscan --metric dsc --scope layer --json
