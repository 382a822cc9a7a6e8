use proptest::prelude::*;

use super::*;

/// Whether an interval holds an integer, compared without rounding.
fn holds(interval: Interval, exact: i128) -> bool {
    (interval.lo.ceil() as i128) <= exact && exact <= (interval.hi.floor() as i128)
}

/// Whether x·y ≤ z, compared without rounding.
fn product_at_most(x: f64, y: f64, z: f64) -> bool {
    let (p, e) = two_product(x, y);
    p < z || (p == z && e <= 0.0)
}

/// Integers of up to 46 bits, most of whose products do not fit a double.
fn wide_integers(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(i64, i64)>> {
    let one = (-(1_i64 << 36)..(1 << 36), 0..10_u32).prop_map(|(m, e)| m << e);
    prop::collection::vec((one.clone(), one), count)
}

/// A number as an unevaluated sum of two doubles, exact to about 2⁻¹⁰⁰: Dekker's arithmetic, which shares no rounding
/// with the intervals.
#[derive(Clone, Copy)]
struct Double(f64, f64);

impl Double {
    fn plus(self, other: Self) -> Self {
        let (s, e) = two_sum(self.0, other.0);
        let (hi, lo) = two_sum(s, e + self.1 + other.1);
        Self(hi, lo)
    }

    fn times(self, other: Self) -> Self {
        let (p, e) = two_product(self.0, other.0);
        let (hi, lo) = two_sum(p, e + self.0 * other.1 + self.1 * other.0);
        Self(hi, lo)
    }

    fn inside(self, interval: Interval) -> bool {
        let at_most = |a: Self, b: Self| a.0 < b.0 || (a.0 == b.0 && a.1 <= b.1);
        at_most(Self(interval.lo, 0.0), self) && at_most(self, Self(interval.hi, 0.0))
    }
}

fn moderate() -> impl Strategy<Value = f64> {
    (-1.0..1.0_f64, -30..30_i32).prop_map(|(m, e)| m * 2f64.powi(e))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn dot_products_enclose_the_exact_integer(pairs in wide_integers(1..60)) {
        let exact: i128 = pairs.iter().map(|(a, b)| i128::from(*a) * i128::from(*b)).sum();
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(a, b)| (*a as f64, *b as f64)).unzip();
        let found = enclosed_dot(&x, &y);
        prop_assert!(holds(found, exact), "{:?} {}", found, exact);
        let size: f64 = x.iter().zip(&y).map(|(a, b)| (a * b).abs()).sum();
        prop_assert!(found.width() <= 2.3e-16 * found.magnitude() + 1e-26 * size);
    }

    #[test]
    fn sums_and_differences_enclose_the_exact_integer(a in any::<i64>(), b in any::<i64>()) {
        let (x, y) = (a as f64, b as f64); // rounded once, and then exact
        let (a, b) = (x as i128, y as i128);
        prop_assert!(holds(Interval::point(x) + Interval::point(y), a + b));
        prop_assert!(holds(Interval::point(x) - Interval::point(y), a - b));
        prop_assert!(holds(enclosed_sum([Interval::point(x), Interval::point(y)]), a + b));
    }

    #[test]
    fn quotients_and_roots_enclose_by_their_definition(a in moderate(), b in moderate()) {
        prop_assume!(b != 0.0);
        let q = Interval::point(a) / Interval::point(b);
        let (low, high) = if b > 0.0 { (q.lo, q.hi) } else { (q.hi, q.lo) };
        prop_assert!(product_at_most(low, b, a) && product_at_most(-high, b, -a), "{a} / {b} in {q:?}");
        prop_assert!(q.hi <= q.lo.next_up());
        let x = a.abs();
        let r = Interval::point(x).sqrt();
        prop_assert!(product_at_most(r.lo, r.lo, x) && product_at_most(-r.hi, r.hi, -x), "√{x} in {r:?}");
        prop_assert!(r.hi <= r.lo.next_up());
    }

    #[test]
    fn formulas_enclose_what_doubled_precision_finds([a, b, c, d] in [moderate(), moderate(), moderate(), moderate()]) {
        let [i, j, k, l] = [a, b, c, d].map(Interval::point);
        let [p, q, r, s] = [a, b, c, d].map(|x| Double(x, 0.0));
        let (found, wanted) = ((i + j * k) * (k - l * i), p.plus(q.times(r)).times(r.plus(Double(-d, 0.0).times(p))));
        prop_assert!(wanted.inside(found), "{} + {} in {found:?}", wanted.0, wanted.1);
        prop_assert!(p.times(p).plus(s.times(s)).inside(i.square() + l.square()));
    }

    #[test]
    fn operations_are_inclusion_isotone(a in moderate(), b in moderate(), r in 0.0..1.0_f64, s in 0.0..1.0_f64) {
        let wide = |x: f64, r: f64| Interval::new(x - r * x.abs(), x + r * x.abs());
        let (x, y) = (wide(a, r), wide(b, s));
        let within = |inner: Interval, outer: Interval| outer.lo <= inner.lo && inner.hi <= outer.hi;
        let (p, q) = (Interval::point(a), Interval::point(b));
        prop_assert!(within(p + q, x + y) && within(p - q, x - y) && within(p * q, x * y) && within(p / q, x / y));
        prop_assert!(within(p.abs(), x.abs()) && within(p.square(), x.square()) && within(p.min(q), x.min(y)));
        prop_assert!(within(p.abs().sqrt(), x.abs().sqrt()) && within(p.max(q), x.max(y)));
        let exponent = Interval::new(1.3, 1.4);
        prop_assert!(within(p.abs().powf(Interval::point(1.35)), x.abs().powf(exponent)));
    }

    #[test]
    fn powers_undo_each_other(a in 1e-6..1e6_f64, y in 0.1..8.0_f64) {
        let exponent = Interval::point(y);
        let there = Interval::point(a).powf(exponent);
        let back = there.powf(Interval::point(1.0) / exponent);
        prop_assert!(back.contains(a) && back.width() < 1e-12 * a, "{a} in {back:?}");
        // against multiplication, which is rounded by IEEE 754
        let cube = Interval::point(a) * Interval::point(a) * Interval::point(a);
        let power = Interval::point(a).powf(Interval::point(3.0));
        prop_assert!(power.lo <= cube.hi && cube.lo <= power.hi);
    }

    #[test]
    fn files_keep_every_bit(a in any::<f64>(), b in any::<f64>()) {
        let interval = Interval::new(a.min(b), a.max(b));
        let text = serde_json::to_string(&interval).unwrap();
        prop_assert_eq!(serde_json::from_str::<Interval>(&text).unwrap(), interval);
    }
}

#[test]
fn a_thousand_terms_stay_within_one_part_in_ten_to_thirteen() {
    let x: Vec<f64> = (0..1000).map(|i| (f64::from(i) * 0.7).sin()).collect();
    let y: Vec<f64> = (0..1000).map(|i| (f64::from(i) * 0.7).sin() + 0.1).collect();
    let found = enclosed_dot(&x, &y);
    assert!(found.width() <= 1e-15 * found.lo, "{found:?}");
    let sum = enclosed_sum(x.iter().map(|x| Interval::point(*x).square()));
    assert!(sum.width() <= 1e-13 * sum.lo, "{sum:?}");
}

#[test]
fn files_with_bounds_out_of_order_are_refused() {
    assert_eq!(serde_json::from_str::<Interval>("[null, 2.0]").unwrap(), Interval::new(f64::NEG_INFINITY, 2.0));
    assert!(serde_json::from_str::<Interval>("[3.0, 2.0]").unwrap_err().to_string().contains("out of order"));
    assert!(serde_json::from_str::<Interval>("[3.0]").is_err());
}

#[test]
fn exact_operations_add_nothing() {
    let [two, three] = [2.0, 3.0].map(Interval::point);
    assert_eq!(two + three, Interval::point(5.0));
    assert_eq!(two * three, Interval::point(6.0));
    assert_eq!(three / two, Interval::point(1.5));
    assert_eq!((two * two).sqrt(), two);
    assert_eq!(Interval::new(-1.0, 2.0).square(), Interval::new(0.0, 4.0));
    assert_eq!(enclosed_dot(&[1.0, 2.0], &[3.0, 4.0]), Interval::point(11.0));
}

#[test]
fn what_overflows_or_vanishes_is_still_enclosed() {
    let huge = Interval::point(1e308);
    let sum = huge + huge;
    assert_eq!((sum.lo, sum.hi), (f64::MAX, f64::INFINITY));
    assert_eq!((huge * huge).hi, f64::INFINITY);
    assert_eq!(enclosed_dot(&[1e308, 1e308], &[10.0, -10.0]), Interval::WHOLE);
    let tiny = Interval::point(1e-200) * Interval::point(1e-200);
    assert!(tiny.lo <= 0.0 && tiny.hi > 0.0, "{tiny:?}");
    let dot = enclosed_dot(&[1e-160, 3e-160], &[1e-160, -1e-160]);
    assert!(dot.contains(-2e-320) && dot.width() < 1e-290, "{dot:?}");
    let root = Interval::point(5e-324).sqrt();
    assert!(root.lo < root.hi && root.lo > 2.2e-162 && root.hi < 2.3e-162);
    assert_eq!(Interval::point(1.0) / Interval::new(-1.0, 1.0), Interval::WHOLE);
    assert_eq!(Interval::point(f64::NAN), Interval::WHOLE);
    assert_eq!(Interval::WHOLE * Interval::ZERO, Interval::ZERO);
}
