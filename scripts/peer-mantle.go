// Reads every tensor of an .mcf file with mantle's own code, for scripts/check-peers: one line of JSON for each, and its
// numbers as float32 in FOLDER/INDEX.f32. It is compiled inside a checkout of mantle with -overlay, because mantle keeps its
// reader in internal packages.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/samcharles93/mantle/internal/backend/core"
	"github.com/samcharles93/mantle/internal/mcfstore"
	"github.com/samcharles93/mantle/pkg/mcf"
)

type tensor struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	Error string `json:"error,omitempty"`
}

func values(file *mcfstore.File, name string) (numbers []float32, shape []int, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("%v", failure)
		}
	}()
	raw, info, err := file.ReadTensorRaw(name)
	if err != nil {
		return nil, nil, err
	}
	if !mcf.DTypeRequiresAligned64(info.DType) {
		numbers, info, err = file.ReadTensorF32(name)
		return numbers, info.Shape, err
	}
	rows, cols := info.Shape[0], info.Shape[1]
	mat := core.Mat{R: rows, C: cols, Stride: cols, DType: info.DType, Raw: raw}
	numbers = make([]float32, rows*cols)
	for i := range rows {
		mat.RowTo(numbers[i*cols:(i+1)*cols], i)
	}
	return numbers, info.Shape, nil
}

func main() {
	file, err := mcfstore.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	plain, err := mcf.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	index, err := mcf.ParseTensorIndexSection(plain.SectionData(plain.Section(mcf.SectionTensorIndex)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := range index.Count() {
		name, _ := index.Name(i)
		line := tensor{Name: name}
		numbers, shape, err := values(file, name)
		line.Shape = shape
		if err != nil {
			line.Error = err.Error()
		} else {
			bytes := make([]byte, 4*len(numbers))
			for k, number := range numbers {
				binary.LittleEndian.PutUint32(bytes[4*k:], math.Float32bits(number))
			}
			if err := os.WriteFile(filepath.Join(os.Args[2], fmt.Sprintf("%d.f32", i)), bytes, 0o600); err != nil {
				line.Error = err.Error()
			}
		}
		text, _ := json.Marshal(line)
		fmt.Println(string(text))
	}
}
