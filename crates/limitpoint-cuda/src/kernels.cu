// What happens to numbers between two matrix products. `real` is float or double (-DREAL=...).
//
// Images of n examples lie channel by channel: a[c][i][p], example i, pixel p. Vectors lie example by example: a[i][k].
// Every sum has one order, so that the same numbers come out every time. Nothing uses atomics. A pass has fewer than 2^31
// numbers of any kind, so that places are counted in 32 bits, in which divisions are cheap.
typedef REAL real;
typedef unsigned int uint;
typedef unsigned long long wide;

// One thread for each number.
#define EACH(at, count)                                                                                                \
    uint at = blockIdx.x * blockDim.x + threadIdx.x;                                                                   \
    if (at < (count))
// Four numbers for each thread, which are read before the first is written.
#define FOUR(k) _Pragma("unroll") for (int k = 0; k < 4; k++)
#define OF_FOUR(k) (blockIdx.x * (wide)(4 * blockDim.x) + k * blockDim.x + threadIdx.x)

// Examples rows[first..first + n] of x, where an example is channels × plane numbers, channel by channel.
extern "C" __global__ void gather(real *out, const real *x, const int *rows, int first, uint n, uint channels, uint plane) {
    EACH(at, channels * n * plane) {
        uint c = at / (n * plane), rest = at - c * n * plane;
        uint i = rest / plane, p = rest - i * plane;
        wide row = rows ? rows[first + i] : first + i;
        out[at] = x[(row * channels + c) * plane + p];
    }
}

// From images to vectors (back = 0): out[i][c·plane + p] = a[c][i][p]; or the other way round.
extern "C" __global__ void flatten(real *out, const real *a, uint n, uint channels, uint plane, int back) {
    EACH(at, channels * n * plane) {
        uint c = at / (n * plane), rest = at - c * n * plane;
        uint i = rest / plane, p = rest - i * plane;
        uint vector = (i * channels + c) * plane + p;
        if (back) out[at] = a[vector];
        else out[vector] = a[at];
    }
}

struct Window {
    int height, width;       // of the image before
    int out_height, out_width;
    int kernel_height, kernel_width;
    int stride, above, left; // zeros above and to the left
};

// Columns of a convolution: out[(c, i, j)][example, place]; a row of blocks for each channel.
extern "C" __global__ void columns(real *out, const real *a, uint n, struct Window w) {
    uint places = w.out_height * w.out_width, plane = w.height * w.width, c = blockIdx.y;
    EACH(at, n * places) {
        uint example = at / places, place = at - example * places, row = place / w.out_width;
        int y = row * w.stride - w.above, x = (place - row * w.out_width) * w.stride - w.left;
        const real *image = a + ((wide)c * n + example) * plane;
        real *to = out + (wide)c * w.kernel_height * w.kernel_width * n * places + at;
        for (int i = 0; i < w.kernel_height; i++)
            for (int j = 0; j < w.kernel_width; j++) {
                bool inside = 0 <= y + i && y + i < w.height && 0 <= x + j && x + j < w.width;
                *to = inside ? image[(y + i) * w.width + x + j] : (real)0;
                to += (wide)n * places;
            }
    }
}

// The place of a window whose entry `entry` lies on `pixel`, or −1.
__device__ int place_of(int pixel, int entry, int stride, int places) {
    int from = pixel - entry;
    if (from < 0) return -1;
    int place = stride == 1 ? from : from / stride;
    return place * stride == from && place < places ? place : -1;
}

// The images whose columns these would be, summed: the transpose of `columns`.
extern "C" __global__ void images(real *out, const real *col, uint n, struct Window w) {
    uint places = w.out_height * w.out_width, plane = w.height * w.width, c = blockIdx.y;
    EACH(at, n * plane) {
        uint example = at / plane, pixel = at - example * plane, y = pixel / w.width, x = pixel - y * w.width;
        const real *from = col + ((wide)c * w.kernel_height * w.kernel_width * n + example) * places;
        real sum = 0;
        for (int i = 0; i < w.kernel_height; i++) {
            int row = place_of(y + w.above, i, w.stride, w.out_height);
            for (int j = 0; j < w.kernel_width; j++) {
                int column = place_of(x + w.left, j, w.stride, w.out_width);
                if (row >= 0 && column >= 0) sum += from[row * w.out_width + column];
                from += (wide)n * places;
            }
        }
        out[(wide)c * n * plane + at] = sum;
    }
}

// σ(z) and its slope from the left for the functions that a pool can take along: 0 leaky ReLU of this slope (0 for ReLU), 3 a
// factor. The slope is read off z, or off σ(z), which is positive where z is.
__device__ real bend(real z, int kind, double slope) {
    if (kind == 0) return z <= 0 ? (slope == 0 ? (real)0 : (real)slope * z) : z;
    return (real)slope * z;
}
__device__ real bend_slope(real bent, int kind, double slope) {
    return kind == 0 && !(bent <= 0) ? (real)1 : (real)slope;
}

// Pools: σ of the largest number of every window, and where it was (the first of the largest), or σ of the mean.
extern "C" __global__ void pool(real *out, int *where, const real *a, uint images, struct Window w, int largest, int kind, double slope) {
    uint places = w.out_height * w.out_width, plane = w.height * w.width;
    EACH(at, images * places) {
        uint image = at / places, place = at - image * places, row = place / w.out_width;
        int top = row * w.stride, left = (place - row * w.out_width) * w.stride;
        const real *from = a + (wide)image * plane;
        int best = top * w.width + left;
        real value = from[best], sum = 0;
        for (int i = 0; i < w.kernel_height; i++)
            for (int j = 0; j < w.kernel_width; j++) {
                int pixel = (top + i) * w.width + left + j;
                real here = from[pixel];
                sum += here;
                // a number that is none stays, so that it is seen
                if (here > value || (here != here && value == value)) { value = here; best = pixel; }
            }
        out[at] = bend(largest ? value : sum / (w.kernel_height * w.kernel_width), kind, slope);
        if (largest) where[at] = best;
    }
}

// Signals of the pixels from those of the windows they are in, for windows that lie side by side: a thread for every window, also
// for what is left of one at the lower and the right edge, where signals are 0.
extern "C" __global__ void unpool_apart(real *out, const int *where, const real *signal, const real *bent, uint images, struct Window w,
                                        int largest, int kind, double slope) {
    uint down = (w.height + w.stride - 1) / w.stride, across = (w.width + w.stride - 1) / w.stride;
    EACH(at, images * down * across) {
        uint image = at / (down * across), place = at - image * down * across, row = place / across, column = place - row * across;
        bool whole = row < w.out_height && column < w.out_width;
        uint window = (image * w.out_height + row) * w.out_width + column;
        real value = whole ? signal[window] * bend_slope(bent[window], kind, slope) : (real)0;
        int best = whole && largest ? where[window] : -1;
        if (!largest) value /= w.kernel_height * w.kernel_width;
        real *to = out + (wide)image * w.height * w.width;
        for (int y = row * w.stride; y < min((int)(row + 1) * w.stride, w.height); y++)
            for (int x = column * w.stride; x < min((int)(column + 1) * w.stride, w.width); x++)
                to[y * w.width + x] = !largest || y * w.width + x == best ? value : (real)0;
    }
}

// The same for windows that overlap, or leave gaps: a thread for every pixel.
extern "C" __global__ void unpool(real *out, const int *where, const real *signal, const real *bent, uint images, struct Window w,
                                  int largest, int kind, double slope) {
    uint places = w.out_height * w.out_width, plane = w.height * w.width;
    real share = (real)1 / (w.kernel_height * w.kernel_width);
    EACH(at, images * plane) {
        uint image = at / plane, pixel = at - image * plane, y = pixel / w.width, x = pixel - y * w.width;
        real sum = 0;
        for (int i = 0; i < w.kernel_height; i++) {
            int row = place_of(y, i, w.stride, w.out_height);
            for (int j = 0; j < w.kernel_width; j++) {
                int column = place_of(x, j, w.stride, w.out_width);
                if (row < 0 || column < 0) continue;
                uint place = image * places + row * w.out_width + column;
                real value = signal[place] * bend_slope(bent[place], kind, slope);
                if (!largest) sum += share * value;
                else if (where[place] == pixel) sum += value;
            }
        }
        out[at] = sum;
    }
}

// z + b, where number `at` belongs to channel at / inner % channels.
extern "C" __global__ void add_bias(real *z, const real *bias, uint count, uint inner, uint channels) {
    EACH(at, count) z[at] += bias[at / inner % channels];
}

// Gradients of biases, the sums of their signals: a block sums one piece of one channel, always in the same order. Several
// pieces go where `add_up` finds them.
extern "C" __global__ void bias_gradient(real *out, const real *signal, uint count, uint inner, uint channels, uint piece, int add) {
    __shared__ real part[256];
    uint c = blockIdx.x, outer = count / (inner * channels), length = outer * inner;
    uint end = min(length, (blockIdx.y + 1) * piece);
    real sums[4] = {0, 0, 0, 0};
    for (uint from = blockIdx.y * piece + threadIdx.x; from < end; from += 4 * 256) {
        FOUR(k) {
            uint at = from + k * 256;
            if (at < end) {
                uint i = outer == 1 ? 0 : at / inner;
                sums[k] += signal[((wide)i * channels + c) * inner + at - i * inner];
            }
        }
    }
    part[threadIdx.x] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    real *to = out + blockIdx.y * channels + c;
    if (threadIdx.x == 0) *to = add ? *to + part[0] : part[0];
}

// The sum of `number` pieces of `count` numbers each, in one order: so many threads of a block for each number.
extern "C" __global__ void add_up(real *out, const real *pieces, uint count, uint number, int add, uint threads) {
    __shared__ real sums[256];
    uint numbers = 256 / threads, lane = threadIdx.x % numbers, group = threadIdx.x / numbers, at = blockIdx.x * numbers + lane;
    real sum = 0;
    if (at < count) {
#pragma unroll 8
        for (uint k = group; k < number; k += threads) sum += pieces[(wide)k * count + at];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (group == 0 && at < count) {
        for (uint k = 1; k < threads; k++) sum += sums[k * numbers + lane];
        out[at] = add ? out[at] + sum : sum;
    }
}

__device__ real power(real z, int exponent) {
    real product = 1;
    for (int i = 0; i < exponent; i++) product *= z;
    return product;
}

// σ: 0 leaky ReLU of this slope (0 for ReLU), 1 max(z, 0)^exponent, 2 z², 3 a factor.
extern "C" __global__ void activate(real *out, const real *z, wide count, int kind, double slope, int exponent) {
    real v[4];
    FOUR(k) v[k] = OF_FOUR(k) < count ? z[OF_FOUR(k)] : (real)0;
    FOUR(k) {
        if (kind == 1) v[k] = v[k] <= 0 ? (real)0 : power(v[k], exponent);
        else if (kind == 2) v[k] = v[k] * v[k];
        else v[k] = bend(v[k], kind, slope);
        if (OF_FOUR(k) < count) out[OF_FOUR(k)] = v[k];
    }
}

// Signals below σ from those above it; from the left at a kink.
extern "C" __global__ void slopes(real *out, const real *signal, const real *z, wide count, int kind, double slope, int exponent) {
    real v[4], s[4];
    FOUR(k) v[k] = OF_FOUR(k) < count ? z[OF_FOUR(k)] : (real)0;
    FOUR(k) s[k] = OF_FOUR(k) < count ? signal[OF_FOUR(k)] : (real)0;
    FOUR(k) {
        if (kind == 1) v[k] = v[k] <= 0 ? (real)0 : exponent * power(v[k], exponent - 1);
        else if (kind == 2) v[k] = 2 * v[k];
        else v[k] = bend_slope(v[k], kind, slope);
        if (OF_FOUR(k) < count) out[OF_FOUR(k)] = v[k] * s[k];
    }
}

// Parameters in 64 bits to the numbers that are computed with.
extern "C" __global__ void round_to(real *out, const double *params, wide count) {
    FOUR(k) if (OF_FOUR(k) < count) out[OF_FOUR(k)] = (real)params[OF_FOUR(k)];
}

// A part of a metric: the entries before `end` that no part before has, and their function of θ times a factor.
struct Part {
    double end, kind, lambda, exponent, factor;
};

// The metric at entry `at` of the parameters: the function of its part, 0 behind the last.
__device__ double metric_at(const struct Part *parts, int count, wide at, double theta) {
    for (int k = 0; k < count; k++)
        if (at < parts[k].end) {
            struct Part part = parts[k];
            if (part.kind == 0) return part.factor;
            if (part.kind == 1) return part.factor * sqrt(theta * theta + part.lambda);
            return part.factor / ((part.exponent - 1) * pow(fabs(theta), part.exponent - 2) + part.lambda);
        }
    return 0;
}

// A step of all parameters, in 64 bits: rule[0] is 0 for θ + c·g, 1 for θ − c·sign(g) and 2 for θ + c·M(θ)g with the metric
// of rule[2] parts, rule[1] is c. `moved` becomes 1 if an entry of the gradient is not zero.
extern "C" __global__ void update(double *params, real *weights, const real *gradient, wide count, const double *rule,
                                  const struct Part *parts, int *moved) {
    double kind = rule[0], factor = rule[1], p[4], g[4];
    bool any = false;
    FOUR(k) g[k] = OF_FOUR(k) < count ? (double)gradient[OF_FOUR(k)] : 0.0;
    FOUR(k) p[k] = OF_FOUR(k) < count ? params[OF_FOUR(k)] : 0.0;
    FOUR(k) {
        any |= g[k] != 0;
        // a number that is none has no sign: 0 · g brings it back
        if (kind == 0) p[k] += factor * g[k];
        else if (kind == 1) p[k] -= factor * (g[k] > 0 ? 1.0 : g[k] < 0 ? -1.0 : 0.0) + 0.0 * g[k];
        else p[k] += factor * metric_at(parts, (int)rule[2], OF_FOUR(k), p[k]) * g[k];
        if (OF_FOUR(k) < count) {
            params[OF_FOUR(k)] = p[k];
            weights[OF_FOUR(k)] = (real)p[k];
        }
    }
    // one word of a block: thousands of writes to one place wait for each other
    any = __syncthreads_or(any);
    if (any && threadIdx.x == 0) *moved = 1;
}
