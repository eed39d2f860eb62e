//! Inner loops over rows, written in explicit lanes and compiled twice: for AVX2 with fused multiply-add where the
//! machine has it, and plainly.
//!
//! Results depend on which of the two ran, so ranks on unlike machines may differ in the last bits of their own sums;
//! what is all-reduced is the same on all of them.

pub mod dense;
pub mod elementary;
pub mod sparse;

/// Doubles in a vector register.
pub const LANES: usize = 4;
pub type Lanes = [f64; LANES];

/// A loop nest that [`run`] compiles for the machine at hand. `run` must be `#[inline(always)]`, all it calls too.
pub trait Kernel {
    type Output;
    /// `FMA`: whether fused multiply-add is an instruction here.
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// Runs a kernel with the best instructions the machine has.
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the machine has the features that the function is compiled with, as the line above asked it.
        return unsafe { run_with_avx2(kernel) };
    }
    #[cfg(target_arch = "aarch64")]
    return kernel.run::<true>();
    #[cfg(not(target_arch = "aarch64"))]
    kernel.run::<false>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}

/// `a b + c`
#[inline(always)]
pub fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Asks for a slice to be brought into the cache while something else is computed.
#[inline(always)]
fn prefetch(slice: &[f64]) {
    const LINE: usize = 8;
    #[cfg(target_arch = "x86_64")]
    for line in slice.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, and faults at no address; this one is in the slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}
