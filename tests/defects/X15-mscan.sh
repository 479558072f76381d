# Scans from convert have checksums. (Block times of traces and generations of matrices are tested by their formats.)
printf 'token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,5,6\n0,1,0,7,8\n' >rows.csv
coffer convert rows.csv scan.mscan
coffer get scan.mscan metadata.checksums
coffer get scan.mscan metadata.front_crc32
python3 - <<'END'
scan = bytearray(open("scan.mscan", "rb").read())
scan[scan.index(bytes([5, 0, 6, 0]))] ^= 1
open("scan.mscan", "wb").write(scan)
END
coffer check --full scan.mscan | head -1
coffer get scan.mscan activation >/dev/null 2>&1
echo "exit $?"
