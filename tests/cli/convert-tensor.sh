# One tensor of a model as an array: by name, some of its rows, decoded where it is quantized.
model=$DATA/compat/mcf/mantle-k4.mcf
coffer convert "$model" all.npy --tensor lm_head.weight
coffer get "$model" lm_head.weight --dequantize -o other.npy
cmp all.npy other.npy
coffer convert "$model" - --to csv --tensor model.norm.weight --rows 0..3
coffer convert "$model" which.npy
coffer convert "$model" none.npy --tensor nope
coffer convert "$model" far.npy --tensor lm_head.weight --rows 0..99
ls
