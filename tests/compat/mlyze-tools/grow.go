package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte

func leak() {
	for i := 0; i < 10; i++ {
		kept = append(kept, make([]byte, 1000))
	}
}

func churn() {
	for i := 0; i < 100; i++ {
		kept[0] = make([]byte, 64)
	}
}

func main() {
	runtime.MemProfileRate = 1
	leak()
	churn()
	runtime.GC()
	f, _ := os.Create(os.Args[1])
	pprof.WriteHeapProfile(f)
	f.Close()
}
