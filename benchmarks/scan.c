// The yardstick of benchmarks/scan.py: scans in C with intrinsics, for AVX-512 and for AVX2.
//
// The window (s) lies in tiles that stay in the cache, a block of new tuples (r) passes over each of them, BLOCK at a time
// for every vector that is loaded; GROUP vectors are tested by one branch. Where columns have NULLs, they are looked
// at where all else holds. Compiled with -DBLOCK=… -DGROUP=… -DTILE=…; no contraction, so that floats round as SQL's do.
#include <immintrin.h>
#include <stdint.h>

#ifdef __AVX512F__
#define LANES 16
typedef __m512i INTS;
typedef __m512 FLOATS;
typedef struct { __m512d low, high; } DOUBLES;
typedef __mmask16 BITS;
#define EVERY(x) _mm512_set1_epi32(x)
#define EVERY_FLOAT(x) _mm512_set1_ps(x)
#define READ(p) _mm512_loadu_si512(p)
#define READ_FLOAT(p) _mm512_loadu_ps(p)
#define GREATER(a, b) _mm512_cmpgt_epi32_mask(a, b)
#define EQUAL(a, b) _mm512_cmpeq_epi32_mask(a, b)
#define AT_LEAST(a, b) _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ)
#define LESS(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define BOTH(a, b) (BITS)((a) & (b))
#define EITHER(a, b) (BITS)((a) | (b))
#define NEITHER(a, b) (BITS)(~(a) & (b))
#define DISTANCE(a, b) _mm512_abs_epi32(_mm512_sub_epi32(a, b))
#define MINUS(a, b) _mm512_sub_ps(a, b)
#define PLUS(a, b) _mm512_add_ps(a, b)
#define TIMES(a, b) _mm512_mul_ps(a, b)
#define WORD(bits) (uint32_t)(bits)
#define SOME(bits) (bits)
static inline DOUBLES every_double(double x) { return (DOUBLES){_mm512_set1_pd(x), _mm512_set1_pd(x)}; }
static inline DOUBLES read_double(const double *p) { return (DOUBLES){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)}; }
static inline BITS near(DOUBLES a, DOUBLES b, double apart) {
  __m512d most = _mm512_set1_pd(apart);
  __mmask8 low = _mm512_cmp_pd_mask(_mm512_abs_pd(_mm512_sub_pd(a.low, b.low)), most, _CMP_LT_OQ);
  __mmask8 high = _mm512_cmp_pd_mask(_mm512_abs_pd(_mm512_sub_pd(a.high, b.high)), most, _CMP_LT_OQ);
  return _mm512_kunpackb(high, low);
}
#else
#define LANES 8
typedef __m256i INTS;
typedef __m256 FLOATS;
typedef struct { __m256d low, high; } DOUBLES;
typedef __m256 BITS;
#define EVERY(x) _mm256_set1_epi32(x)
#define EVERY_FLOAT(x) _mm256_set1_ps(x)
#define READ(p) _mm256_loadu_si256((const __m256i *)(p))
#define READ_FLOAT(p) _mm256_loadu_ps(p)
#define GREATER(a, b) _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b))
#define EQUAL(a, b) _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))
#define AT_LEAST(a, b) _mm256_cmp_ps(a, b, _CMP_GE_OQ)
#define LESS(a, b) _mm256_cmp_ps(a, b, _CMP_LT_OQ)
#define BOTH(a, b) _mm256_and_ps(a, b)
#define EITHER(a, b) _mm256_or_ps(a, b)
#define NEITHER(a, b) _mm256_andnot_ps(a, b)
#define DISTANCE(a, b) _mm256_abs_epi32(_mm256_sub_epi32(a, b))
#define MINUS(a, b) _mm256_sub_ps(a, b)
#define PLUS(a, b) _mm256_add_ps(a, b)
#define TIMES(a, b) _mm256_mul_ps(a, b)
#define WORD(bits) (uint32_t)_mm256_movemask_ps(bits)
#define SOME(bits) !_mm256_testz_ps(bits, bits)
static inline DOUBLES every_double(double x) { return (DOUBLES){_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
static inline DOUBLES read_double(const double *p) { return (DOUBLES){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
static inline BITS near(DOUBLES a, DOUBLES b, double apart) {
  __m256d most = _mm256_set1_pd(apart), sign = _mm256_set1_pd(-0.0);
  __m256d low = _mm256_cmp_pd(_mm256_andnot_pd(sign, _mm256_sub_pd(a.low, b.low)), most, _CMP_LT_OQ);
  __m256d high = _mm256_cmp_pd(_mm256_andnot_pd(sign, _mm256_sub_pd(a.high, b.high)), most, _CMP_LT_OQ);
  // of 64 bits each lane's low half, brought into order
  __m256 halves = _mm256_shuffle_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high), 0x88);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(halves), 0xD8));
}
#endif

typedef struct {
  const int32_t *x, *k;    // an integer, the code of a string
  const float *y, *z;      // two numbers
  const double *d;         // a double
  const uint8_t *unknown;  // bits of the columns that are NULL, x 1, k 2, y 4, z 8, d 16; or no array
} Tuples;

// What a predicate keeps of a new tuple, what it reads of a vector of stored ones, whether a pair holds, and where NULLs
// leave it true: `u` are the unknown columns of both.
#define SHAPE(name, STATE, KEEP, LOAD, HOLDS, KNOWN)                                                                   \
  int64_t name(const Tuples *r, const Tuples *s, int64_t rows, int64_t count, int32_t *r_out, int32_t *s_out) {        \
    int64_t n = 0;                                                                                                     \
    for (int64_t start = 0; start < count; start += TILE) {                                                            \
      int64_t stop = start + TILE < count ? start + TILE : count;                                                      \
      for (int64_t i = 0; i < rows; i += BLOCK) {                                                                      \
        STATE state[BLOCK];                                                                                            \
        for (int b = 0; b < BLOCK; b++) { int64_t at = i + b; STATE *t = &state[b]; KEEP; }                            \
        for (int64_t j = start; j < stop; j += GROUP * LANES) {                                                        \
          BITS hits[BLOCK][GROUP], any;                                                                                \
          _Pragma("GCC unroll 8") for (int g = 0; g < GROUP; g++) {                                                    \
            int64_t at = j + g * LANES;                                                                                \
            LOAD;                                                                                                      \
            _Pragma("GCC unroll 8") for (int b = 0; b < BLOCK; b++) { const STATE *t = &state[b]; hits[b][g] = HOLDS; }\
          }                                                                                                            \
          any = hits[0][0];                                                                                            \
          _Pragma("GCC unroll 8") for (int g = 0; g < GROUP; g++)                                                      \
            _Pragma("GCC unroll 8") for (int b = 0; b < BLOCK; b++)                                                    \
              if (g || b) any = EITHER(any, hits[b][g]);                                                               \
          if (__builtin_expect(SOME(any), 0))                                                                          \
            for (int b = 0; b < BLOCK; b++)                                                                            \
              for (int g = 0; g < GROUP; g++)                                                                          \
                for (uint32_t left = WORD(hits[b][g]); left; left &= left - 1) {                                       \
                  int64_t at = j + g * LANES + __builtin_ctz(left);                                                    \
                  uint8_t u = r->unknown ? r->unknown[i + b] | s->unknown[at] : 0;                                     \
                  if (u && !(KNOWN)) continue;                                                                         \
                  r_out[n] = i + b; s_out[n] = at; n++;                                                                \
                }                                                                                                      \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
    return n;                                                                                                          \
  }

// r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10
typedef struct { INTS low, high; FLOATS y_low, y_high; } Band;
SHAPE(band, Band,
      t->low = EVERY(r->x[at] - 11); t->high = EVERY(r->x[at] + 11);
      t->y_low = EVERY_FLOAT(r->y[at] - 10.f); t->y_high = EVERY_FLOAT(r->y[at] + 10.f),
      INTS a = READ(s->x + at); FLOATS b_ = READ_FLOAT(s->y + at),
      BOTH(BOTH(GREATER(a, t->low), GREATER(t->high, a)), BOTH(AT_LEAST(b_, t->y_low), AT_LEAST(t->y_high, b_))),
      !(u & 5))

// (ABS(r.x - s.x) < 2 OR NOT (r.y < s.y * 2)) AND r.k = s.k
typedef struct { INTS x, k; FLOATS half; } Logic;
SHAPE(logic, Logic,
      t->x = EVERY(r->x[at]); t->k = EVERY(r->k[at]); t->half = EVERY_FLOAT(r->y[at] * 0.5f),
      INTS x = READ(s->x + at); INTS k = READ(s->k + at); FLOATS y = READ_FLOAT(s->y + at),
      BOTH(EITHER(GREATER(EVERY(2), DISTANCE(x, t->x)), AT_LEAST(t->half, y)), EQUAL(k, t->k)),
      !(u & 2) && ((!(u & 1) && r->x[i + b] - s->x[at] < 2 && s->x[at] - r->x[i + b] < 2) ||
                   (!(u & 4) && r->y[i + b] >= s->y[at] * 2)))

// ABS(r.d * 1.5 - s.d) < 0.05 AND r.x <> s.x
typedef struct { DOUBLES d; INTS x; } Double;
SHAPE(doubles, Double,
      t->d = every_double(r->d[at] * 1.5); t->x = EVERY(r->x[at]),
      DOUBLES d = read_double(s->d + at); INTS x = READ(s->x + at),
      NEITHER(EQUAL(x, t->x), near(t->d, d, 0.05)),
      !(u & 17))

// r.k = s.k AND r.x < s.x
typedef struct { INTS k, x; } Words;
SHAPE(words, Words,
      t->k = EVERY(r->k[at]); t->x = EVERY(r->x[at]),
      INTS k = READ(s->k + at); INTS x = READ(s->x + at),
      BOTH(EQUAL(k, t->k), GREATER(x, t->x)),
      !(u & 3))

// (r.y - s.y) * (r.y - s.y) + (r.z - s.z) * (r.z - s.z) < 100
typedef struct { FLOATS y, z; } Point;
static inline FLOATS squared(FLOATS x) { return TIMES(x, x); }
SHAPE(distance, Point,
      t->y = EVERY_FLOAT(r->y[at]); t->z = EVERY_FLOAT(r->z[at]),
      FLOATS y = READ_FLOAT(s->y + at); FLOATS z = READ_FLOAT(s->z + at),
      LESS(PLUS(squared(MINUS(t->y, y)), squared(MINUS(t->z, z))), EVERY_FLOAT(100.f)),
      !(u & 12))
