// new, delete and exceptions: check-record compares the trace with what it knows of this file.
#include <memory>
#include <stdexcept>

#if defined __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif

namespace shop
{
struct Crate {
    long weights[32];
};

template <typename T> KEEP T *make()
{
    return new T();
}

KEEP void fail(int depth)
{
    std::unique_ptr<Crate> crate(make<Crate>());
    if (depth == 0)
        throw std::runtime_error("full");
    fail(depth - 1);
    crate->weights[0] = depth;
}
} // namespace shop

int main()
{
    for (int i = 0; i < 3; i++) {
        try {
            shop::fail(i);
        } catch (const std::runtime_error &) {
        }
    }
    shop::Crate *kept = shop::make<shop::Crate>();
    char *volatile bytes = new char[555];
    delete[] bytes;
    return kept ? 0 : 1;
}
