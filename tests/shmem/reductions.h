/* Operations of reductions in plain C, and values for them whose results are exact in all types and orders. */
#include <complex.h>

/* Everything repeats after this many elements. */
#define PERIOD 60
/* The most elements of a reduction. */
#define MOST 20000

#define BITS(T, pe, j) (T)(0x9e3779b97f4a7c15ull * (unsigned)(pe * 5 + j + 1) >> 7)
#define ORDERED(T, pe, j) (T)((pe * 7 + j * 3) % 11 - ((T)-1 < (T)1 ? 5 : 0))
#define SMALL(T, pe, j) (T)((pe + j) % 5)
#define FACTOR(T, pe, j) (T)((pe + j) % 3 == 0 ? 2 : 1)
#define AND(a, b) a & b
#define OR(a, b) a | b
#define XOR(a, b) a ^ b
#define MAX(a, b) a > b ? a : b
#define MIN(a, b) a < b ? a : b
#define SUM(a, b) a + b
#define PROD(a, b) a * b

/* Complex values have an imaginary part; the other types must not be asked for one. */
#define IMAGINARY(T, pe, j) \
    _Generic((T *)0, double _Complex *: ((pe) + 2 * (j)) % 3 * (double _Complex)I, \
             float _Complex *: ((pe) + 2 * (j)) % 3 * (float _Complex)I, default: 0)

/* Defines the functions that give element j of a PE, and that combine two elements. */
#define OPERATION(F, T, V, OP)                                                                   \
    static void value_##F(void *to, int pe, int j) { *(T *)to = V(T, pe, j) + IMAGINARY(T, pe, j); } \
    static void combine_##F(void *to, const void *x) {                                           \
        T a = *(T *)to, b = *(const T *)x;                                                       \
        *(T *)to = (T)(OP(a, b));                                                                \
    }
