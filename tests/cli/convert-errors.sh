# What cannot be converted, and what to do about it.
scan=$DATA/vectors/mscan/two-sequences.mscan
try() {
    coffer convert "$@"
    echo "exit $?"
}
try
try "$scan" -
try "$scan" out.picture
try "$scan" out.mscan
try "$scan" out.npy --quantize
try "$scan" out.csv --real
try "$scan" out.csv --tokens x
try "$DATA/vectors/mscan/truncated-records.mscan" out.csv
try missing.csv out.mscan
echo text >nameless
try nameless out.mscan
printf 'token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,70000,1\n' >bad.csv
try bad.csv out.mscan
echo precious >exists.csv
try "$scan" exists.csv
cat exists.csv
try "$scan" exists.csv --force
head -1 exists.csv
ls
coffer convert "$DATA/vectors/mscan/two-sequences.mscan" no-folder/rows.csv
echo "exit $?"
