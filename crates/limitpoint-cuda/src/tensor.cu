// Matrix products in 32 bits on the units of a card that multiply small matrices (generation 8.0 and later).
//
// These units read the first 11 binary places of a number. So every factor is split into them and what is left, x = x1 + x2, and a
// product is x1·y1 + x1·y2 + x2·y1: about 21 places, summed in 32 bits. Of a convolution no columns are ever
// written: what a column would hold is fetched from the image where it is needed.
//
// A block makes HIGH × WIDE numbers of c = a·b, each warp TALL × 32 of them. Sixteen terms of all its sums come into fast memory at
// once, while earlier ones are multiplied. Long sums are cut in pieces, blocks with another z, which `add_up` adds in one order.

// A number of a tile, by its row and its term: what a unit reads of it, its first 11 binary places, and what is left.
template <int COUNT, bool ALONG_A_ROW> __device__ void halve(const float *tile, int row, int term, uint &first, uint &rest) {
    float x = tile[ALONG_A_ROW ? row * ALONG + term : term * ACROSS(COUNT) + row];
    first = __float_as_uint(x);
    rest = __float_as_uint(x - __uint_as_float(first & 0xffffe000u));
}

__device__ void multiply_add(float (&c)[4], const uint (&a)[4], const uint (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Threads of a block.
#define THREADS(high, wide, tall) ((high) / (tall) * (wide))

// Where a product goes: rows × cols numbers, or a piece of their sums of `chunk` terms each.
struct Result {
    float *at;
    const float *bias; // of every row, or none
    int rows, cols, inner, chunk, add;
};

#define FIRST_ROW (blockIdx.y * HIGH)
#define FIRST_COL (blockIdx.x * WIDE)
#define FIRST_TERM (blockIdx.z * c.chunk)

// c = a·b by a block, where `A_ALONG` says that a tile of a has the terms of a sum side by side, and `B_ALONG` of b.
template <int HIGH, int WIDE, int TALL, bool A_ALONG, bool B_ALONG, class A, class B>
__device__ void multiply(A a, B b, struct Result c) {
    __shared__ __align__(16) float tiles_a[STAGES][SIZE(HIGH, A_ALONG)], tiles_b[STAGES][SIZE(WIDE, B_ALONG)];
    int begin = FIRST_TERM, end = min(c.inner, begin + c.chunk), count = (end - begin + DEEP - 1) / DEEP;
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    int top = warp / (WIDE / 32) * TALL, left = warp % (WIDE / 32) * 32;
    float sums[TALL / 16][4][4] = {};
    for (int k = 0; k < STAGES - 1; k++) {
        if (k < count) {
            a.load(tiles_a[k], begin + k * DEEP, end);
            b.load(tiles_b[k], begin + k * DEEP, end);
        }
        asm volatile("cp.async.commit_group;");
    }
    int now = 0, next = STAGES - 1;
    for (int k = 0; k < count; k++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        const float *of_a = tiles_a[now], *of_b = tiles_b[now];
#pragma unroll
        for (int at = 0; at < DEEP; at += 8) {
            if (at == 8) {
                // the tile that was multiplied before this one makes room for the next
                if (k + STAGES - 1 < count) {
                    a.load(tiles_a[next], begin + (k + STAGES - 1) * DEEP, end);
                    b.load(tiles_b[next], begin + (k + STAGES - 1) * DEEP, end);
                }
                asm volatile("cp.async.commit_group;");
            }
            uint a1[TALL / 16][4], a2[TALL / 16][4], b1[4][2], b2[4][2];
#pragma unroll
            for (int i = 0; i < TALL / 16; i++)
#pragma unroll
                for (int part = 0; part < 4; part++)
                    halve<HIGH, A_ALONG>(of_a, top + i * 16 + g + part % 2 * 8, at + t + part / 2 * 4, a1[i][part], a2[i][part]);
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int part = 0; part < 2; part++)
                    halve<WIDE, B_ALONG>(of_b, left + j * 8 + g, at + t + part * 4, b1[j][part], b2[j][part]);
            // the small ones first
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int i = 0; i < TALL / 16; i++) multiply_add(sums[i][j], a2[i], b1[j]);
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int i = 0; i < TALL / 16; i++) multiply_add(sums[i][j], a1[i], b2[j]);
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int i = 0; i < TALL / 16; i++) multiply_add(sums[i][j], a1[i], b1[j]);
        }
        now = now + 1 == STAGES ? 0 : now + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
    float *out = c.at + (wide)blockIdx.z * c.rows * c.cols;
#pragma unroll
    for (int i = 0; i < TALL / 16; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = blockIdx.y * HIGH + top + i * 16 + g + half * 8;
            if (row >= c.rows) continue;
            float bias = c.bias ? c.bias[row] : 0.0f;
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int one = 0; one < 2; one++) {
                    int col = blockIdx.x * WIDE + left + j * 8 + 2 * t + one;
                    if (col >= c.cols) continue;
                    float *to = out + (wide)row * c.cols + col;
                    float sum = sums[i][j][2 * half + one] + bias;
                    *to = c.add ? *to + sum : sum;
                }
        }
}

#define T THREADS(HIGH, WIDE, TALL)
#define PLAIN (const float *a, int a_stride, const float *b, int b_stride, struct Result c)
#define WINDOWED (const float *a, const float *b, const struct Entry *entries, uint n, struct Window w, struct Result c)

// Of two matrices as they lie: c = a·b.
template <int HIGH, int WIDE, int TALL> __device__ void plain PLAIN {
    Rows<HIGH, T> of_a(a, FIRST_ROW, c.rows, a_stride, c.inner);
    multiply<HIGH, WIDE, TALL, true, false>(of_a, Columns<WIDE, T>(b, FIRST_COL, c.cols, b_stride), c);
}
// c = a·bᵀ.
template <int HIGH, int WIDE, int TALL> __device__ void second PLAIN {
    Rows<HIGH, T> of_a(a, FIRST_ROW, c.rows, a_stride, c.inner);
    multiply<HIGH, WIDE, TALL, true, true>(of_a, Rows<WIDE, T>(b, FIRST_COL, c.cols, b_stride, c.inner), c);
}
// c = aᵀ·b.
template <int HIGH, int WIDE, int TALL> __device__ void first PLAIN {
    Columns<HIGH, T> of_a(a, FIRST_ROW, c.rows, a_stride);
    multiply<HIGH, WIDE, TALL, false, false>(of_a, Columns<WIDE, T>(b, FIRST_COL, c.cols, b_stride), c);
}
// A convolution of the images b with the kernels a.
template <int HIGH, int WIDE, int TALL> __device__ void convolve WINDOWED {
    Rows<HIGH, T> of_a(a, FIRST_ROW, c.rows, c.inner, c.inner);
    multiply<HIGH, WIDE, TALL, true, false>(of_a, Windows<WIDE, T>(b, entries, FIRST_COL, n, w, false, FIRST_TERM), c);
}
// Its transpose for a stride of 1: signals of the images before from the signals b.
template <int HIGH, int WIDE, int TALL> __device__ void convolve_back WINDOWED {
    Kernels<HIGH, T> of_a(a, entries, FIRST_ROW, c.rows, w.kernel_height * w.kernel_width, FIRST_TERM);
    multiply<HIGH, WIDE, TALL, true, false>(of_a, Windows<WIDE, T>(b, entries, FIRST_COL, n, w, true, FIRST_TERM), c);
}
// The gradient of kernels from the signals a and the images b.
template <int HIGH, int WIDE, int TALL> __device__ void kernel_gradient WINDOWED {
    Rows<HIGH, T> of_a(a, FIRST_ROW, c.rows, c.inner, c.inner);
    Places<WIDE, T> of_b(b, entries, FIRST_COL, c.cols, n, w, FIRST_TERM);
    multiply<HIGH, WIDE, TALL, true, true>(of_a, of_b, c);
}

// With tiles of these sides, by warps of these rows.
#define KERNEL(name, way, parameters, arguments, high, wide, tall, blocks)                                                \
    extern "C" __global__ __launch_bounds__(THREADS(high, wide, tall), blocks) void name parameters {                     \
        way<high, wide, tall> arguments;                                                                                  \
    }
#define EVERY(way, parameters, arguments)                                                                                 \
    KERNEL(way##_high, way, parameters, arguments, 128, 64, 64, 3)                                                        \
    KERNEL(way##_square, way, parameters, arguments, 64, 64, 32, 5)                                                       \
    KERNEL(way##_low, way, parameters, arguments, 32, 64, 32, 8)                                                          \
    KERNEL(way##_small, way, parameters, arguments, 32, 32, 32, 12)
EVERY(plain, PLAIN, (a, a_stride, b, b_stride, c))
EVERY(second, PLAIN, (a, a_stride, b, b_stride, c))
EVERY(first, PLAIN, (a, a_stride, b, b_stride, c))
EVERY(convolve, WINDOWED, (a, b, entries, n, w, c))
EVERY(convolve_back, WINDOWED, (a, b, entries, n, w, c))
EVERY(kernel_gradient, WINDOWED, (a, b, entries, n, w, c))
