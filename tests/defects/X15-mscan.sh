# Scans from convert have checksums. (Block times of traces and generations of matrices are tested by their formats.)
printf 'token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,5,6\n0,1,0,7,8\n' >rows.csv
coffer convert rows.csv scan.mscan
coffer get scan.mscan metadata.checksums
coffer get scan.mscan metadata.front_crc32
