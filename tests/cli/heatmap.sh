# The heat map as text, and as a picture.
scans=$DATA/vectors/mscan
coffer heatmap "$scans/two-sequences.mscan"
coffer heatmap "$scans/two-sequences.mscan" --rows param --metric grad_norm
coffer heatmap "$scans/two-sequences.mscan" --rows param --param '*.k_proj.*' --tokens 3..9
coffer heatmap "$scans/tokens-without-records.mscan" --low 0 --high 65535
coffer heatmap "$scans/two-sequences.mscan" --log
echo "in color"
COLORTERM=truecolor COLUMNS=30 coffer heatmap "$scans/two-sequences.mscan" --color always --tokens 0..3 | cat -v
TERM=xterm-256color COLUMNS=30 coffer heatmap "$scans/two-sequences.mscan" --color always --tokens 0..3 --palette gray | cat -v

size_of() { # width and height of a PNG
    od -An -v -tx1 -j16 -N8 "$1"
}
coffer heatmap "$scans/two-sequences.mscan" -o map.png --width 800 --height 400
head -c 8 map.png | od -An -c
size_of map.png
coffer heatmap "$scans/two-sequences.mscan" -o map.png --force
size_of map.png
coffer heatmap "$scans/compact-json.mscan" -o same.png
cmp map.png same.png && echo "the same picture for the same records"
coffer heatmap "$scans/two-sequences.mscan" -o map.svg --rows param --palette coolwarm
head -c 5 map.svg; echo
grep -o ' width="[^"]*"' map.svg | head -1
ls
