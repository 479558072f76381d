# What cannot be drawn.
exec 2>&1
scans=$DATA/vectors/mscan
coffer heatmap "$scans/two-sequences.mscan" -o map.gif
echo "exit $?"
coffer heatmap "$scans/two-sequences.mscan" -o no-such-folder/map.png
echo "exit $?"
coffer heatmap "$scans/two-sequences.mscan" --low 9 --high 3
echo "exit $?"
coffer heatmap "$scans/two-sequences.mscan" --log --low 0
echo "exit $?"
coffer heatmap "$scans/two-sequences.mscan" --rows param --param 'nothing*'
echo "exit $?"
coffer heatmap "$scans/two-sequences.mscan" -o map.png --width 99999
echo "exit $?"
coffer heatmap "$scans/empty.mscan"
echo "exit $?"
coffer heatmap "$DATA/compat/mscan/scanner-io-two-appends.mscan" --metric grad_norm --log
echo "exit $?"
ls
