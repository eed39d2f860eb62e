//! All parameters of a module in one buffer, and all gradients in another, cut into buckets.
//!
//! Gradients come from the last layer to the first, so that is the order of the buffers: the first bucket is ready first.

use std::ops::Range;

use tch::{Kind, Tensor};

use super::ScriptModule;
use super::native::{clear_gradient, set_gradient, set_values};
use crate::{Error, Result};

/// The trained parameters of a module, in memory of ours.
pub struct Flat {
    parameters: Vec<Tensor>,
    values: Tensor,
    gradients: Tensor,
    /// Where each parameter is.
    places: Vec<Range<usize>>,
    buckets: Vec<Range<usize>>,
    /// The bucket of each parameter.
    bucket_of: Vec<usize>,
}

impl Flat {
    /// Moves a module's parameters, those that take gradients.
    ///
    /// # Errors
    /// [`Error::ModuleFailed`]: there are none, or one of another type than f32.
    pub fn new(module: &ScriptModule, bucket_bytes: usize) -> Result<Flat> {
        let trained: Vec<(String, Tensor)> =
            module.parameters().into_iter().filter(|(_, parameter)| parameter.requires_grad()).rev().collect();
        if trained.is_empty() {
            return Err(refused("the module has no parameters that take gradients".into()));
        }
        if let Some((name, parameter)) = trained.iter().find(|(_, parameter)| parameter.kind() != Kind::Float) {
            return Err(refused(format!("parameter {name} is of type {:?}, expected float32", parameter.kind())));
        }
        let parameters: Vec<Tensor> = trained.into_iter().map(|(_, parameter)| parameter).collect();
        let mut end = 0;
        let places: Vec<Range<usize>> = parameters
            .iter()
            .map(|parameter| {
                let start = end;
                end += parameter.numel();
                start..end
            })
            .collect();
        let options = (Kind::Float, tch::Device::Cpu);
        let (values, gradients) = (Tensor::zeros([end as i64], options), Tensor::zeros([end as i64], options));
        for (parameter, place) in parameters.iter().zip(&places) {
            let view = |flat: &Tensor| {
                flat.narrow(0, place.start as i64, place.len() as i64).view(parameter.size().as_slice())
            };
            let mut own = view(&values);
            tch::no_grad(|| own.copy_(&parameter.detach()));
            set_values(parameter, &own)?;
            set_gradient(parameter, &view(&gradients))?;
        }
        let (buckets, bucket_of) = buckets(&places, bucket_bytes);
        Ok(Flat { parameters, values, gradients, places, buckets, bucket_of })
    }

    pub fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    pub fn places(&self) -> &[Range<usize>] {
        &self.places
    }

    pub fn buckets(&self) -> &[Range<usize>] {
        &self.buckets
    }

    pub fn bucket_of(&self) -> &[usize] {
        &self.bucket_of
    }

    pub fn len(&self) -> usize {
        self.values.numel()
    }

    pub fn values(&self) -> &[f32] {
        // SAFETY: the buffer is contiguous f32 memory of the CPU, of `len` values, that lives as long as the tensor;
        // libtorch changes parameters in no backward pass.
        unsafe { std::slice::from_raw_parts(self.values.data_ptr().cast(), self.len()) }
    }

    pub fn values_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above; `&mut self` keeps forward and backward passes away meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.values.data_ptr().cast(), self.len()) }
    }

    /// The gradients, as long as no backward pass runs.
    pub fn gradients_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.gradients.data_ptr().cast(), self.len()) }
    }

    /// Where the gradients are: for reading buckets that are ready while a backward pass adds to others.
    pub fn gradients_pointer(&self) -> *mut f32 {
        self.gradients.data_ptr().cast()
    }

    /// Values and gradients at once.
    pub fn split_mut(&mut self) -> (&mut [f32], &mut [f32]) {
        let (len, values, gradients) = (self.len(), self.values.data_ptr().cast(), self.gradients.data_ptr().cast());
        // SAFETY: as above; the two buffers are apart.
        unsafe { (std::slice::from_raw_parts_mut(values, len), std::slice::from_raw_parts_mut(gradients, len)) }
    }

    /// Gives every parameter memory of its own again, so that the module is saved as it came.
    ///
    /// # Errors
    /// [`Error::Tensor`]
    pub fn release(self) -> Result<()> {
        for parameter in &self.parameters {
            clear_gradient(parameter)?;
            set_values(parameter, &parameter.detach().copy())?;
        }
        Ok(())
    }
}

/// Neighbours share a bucket until it has `bucket_bytes`.
fn buckets(places: &[Range<usize>], bucket_bytes: usize) -> (Vec<Range<usize>>, Vec<usize>) {
    let mut buckets: Vec<Range<usize>> = Vec::new();
    let mut bucket_of = Vec::with_capacity(places.len());
    for place in places {
        match buckets.last_mut() {
            Some(bucket) if bucket.len() * size_of::<f32>() < bucket_bytes => bucket.end = place.end,
            _ => buckets.push(place.clone()),
        }
        bucket_of.push(buckets.len() - 1);
    }
    (buckets, bucket_of)
}

fn refused(reason: String) -> Error {
    Error::ModuleFailed { what: "cannot be trained".into(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_buckets_up_to_their_size() {
        let (buckets, bucket_of) = buckets(&[0..10, 10..12, 12..100, 100..101], 44);
        assert_eq!(buckets, [0..12, 12..100, 100..101]);
        assert_eq!(bucket_of, [0, 0, 1, 2]);
    }
}
