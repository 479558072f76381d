"""Allocations with known Python stacks; check-record compares them."""
import threading


class Store:
    def fill(self, size):
        self.items = [bytearray(size)]

    def generate(self):
        yield bytearray(123400)


def deep(depth):
    if depth:
        return deep(depth - 1)
    return bytearray(
        777700)


def größe(size):
    return bytearray(size)


store = Store()
store.fill(100000)
kept = [next(store.generate()), deep(5), größe(222200)]
thread = threading.Thread(target=deep, args=(2,))
thread.start()
thread.join()
