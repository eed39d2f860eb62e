//! A future that is polled on a stack with room.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

const STACK_LEFT_MIN_BYTES: usize = 256 * 1024;
const STACK_SEGMENT_BYTES: usize = 4 * 1024 * 1024;

/// Polls its future on a fresh stack segment where little of the current one is left.
pub struct Grow<F>(pub Pin<Box<F>>);

impl<F: Future> Future for Grow<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        stacker::maybe_grow(STACK_LEFT_MIN_BYTES, STACK_SEGMENT_BYTES, || self.0.as_mut().poll(context))
    }
}
