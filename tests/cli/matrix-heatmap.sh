# The matrix as text and as a picture.
exec 2>&1
m=$DATA/vectors/pycauset
coffer heatmap "$m/dense-f64.pycauset"
coffer heatmap "$m/causal-bit.pycauset"
coffer heatmap "$m/vector-f32.pycauset"
coffer heatmap "$m/triangular-f64.pycauset" --log --low 1
python3 - <<'END'
import struct
rows, cols = 90, 300
head = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, cols)
head = head.ljust(117) + "\n"
with open("waves.npy", "wb") as file:
    file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
    for row in range(rows):
        file.write(struct.pack("<300d", *((row - 45) * (col - 150) / 500 for col in range(cols))))
END
coffer convert waves.npy waves.pycauset
coffer heatmap waves.pycauset
COLUMNS=40 LINES=12 COLORTERM=truecolor coffer heatmap waves.pycauset --color always | cat -v | cut -c 1-60

size_of() { # width and height of a PNG
    od -An -v -tx1 -j16 -N8 "$1"
}
coffer heatmap waves.pycauset -o waves.png
head -c 8 waves.png | od -An -c
size_of waves.png
coffer heatmap waves.pycauset -f -o waves.png --width 500 --height 400 --palette magma
size_of waves.png
coffer heatmap waves.pycauset -o waves.svg
head -c 5 waves.svg; echo
coffer heatmap waves.pycauset -o waves.gif
echo "exit $?"
coffer heatmap waves.pycauset --low 5 --high 1
echo "exit $?"
coffer heatmap waves.pycauset --rows param
echo "exit $?"
coffer heatmap "$m/both-slots-corrupt.pycauset"
echo "exit $?"
ls
