//! How values of several ranks become one, and the inner loops that do it.
//!
//! Every loop combines a lower operand (of the earlier rank) with an upper one. All callers keep that order, so that a
//! result, NaN payloads and signed zeros included, does not depend on which rank computed it.

use crate::element::{Element, sealed::Arithmetic};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ReduceOp {
    Sum = 1,
    Min = 2,
    Max = 3,
    /// The sum divided by the world size.
    Mean = 4,
}

impl ReduceOp {
    pub(crate) fn name(code: u8) -> &'static str {
        const NAMES: [&str; 5] = ["no op", "sum", "min", "max", "mean"];
        NAMES.get(usize::from(code)).copied().unwrap_or("?")
    }

    /// `into[i] = lower[i] op upper[i]`
    pub(crate) fn fold_pair<T: Element>(self, into: &mut [T::Accumulator], lower: &[T], upper: &[T]) {
        let triples = into.iter_mut().zip(lower.iter().zip(upper));
        match self {
            ReduceOp::Sum | ReduceOp::Mean => triples.for_each(|(i, (&l, &u))| *i = l.widen().add(u.widen())),
            ReduceOp::Min => triples.for_each(|(i, (&l, &u))| *i = l.widen().lesser(u.widen())),
            ReduceOp::Max => triples.for_each(|(i, (&l, &u))| *i = l.widen().greater(u.widen())),
        }
    }

    /// `lower[i] = lower[i] op upper[i]`
    pub(crate) fn fold_into_lower<T: Element>(self, lower: &mut [T::Accumulator], upper: &[T]) {
        let pairs = lower.iter_mut().zip(upper);
        match self {
            ReduceOp::Sum | ReduceOp::Mean => pairs.for_each(|(l, &u)| *l = l.add(u.widen())),
            ReduceOp::Min => pairs.for_each(|(l, &u)| *l = l.lesser(u.widen())),
            ReduceOp::Max => pairs.for_each(|(l, &u)| *l = l.greater(u.widen())),
        }
    }

    /// `upper[i] = lower[i] op upper[i]`
    pub(crate) fn fold_into_upper<T: Element>(self, lower: &[T], upper: &mut [T::Accumulator]) {
        let pairs = lower.iter().zip(upper.iter_mut());
        match self {
            ReduceOp::Sum | ReduceOp::Mean => pairs.for_each(|(&l, u)| *u = l.widen().add(*u)),
            ReduceOp::Min => pairs.for_each(|(&l, u)| *u = l.widen().lesser(*u)),
            ReduceOp::Max => pairs.for_each(|(&l, u)| *u = l.widen().greater(*u)),
        }
    }

    /// Turns values that were combined over all of `world_size` ranks into the result.
    pub(crate) fn finish<A: Element>(self, values: &mut [A], world_size: usize) {
        if self == ReduceOp::Mean && world_size > 1 {
            A::divide_all(values, world_size);
        }
    }
}
