//! All-gather: every rank gets the values of all, one after the other in rank order.

use std::ops::Range;

use crate::{
    call::Call,
    element::Element,
    error::{Error, Result},
    group::Group,
    signature::{Collective, Signature},
    within_host,
};

impl Group {
    /// Returns the values of all ranks in rank order. Lengths may differ by rank.
    pub fn all_gather<T: Element>(&self, values: &[T]) -> Result<Vec<T>> {
        let signature = Signature::new(Collective::AllGather, T::TYPE, 0);
        self.run(signature, |call| Ok(self.gather(call, values)?.0))
    }

    /// Returns the bytes of every rank, by rank.
    pub fn all_gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let signature = Signature::new(Collective::AllGather, u8::TYPE, 0);
        let (gathered, parts) = self.run(signature, |call| self.gather(call, bytes))?;
        Ok(parts.into_iter().map(|part| gathered[part].to_vec()).collect())
    }

    /// Returns the values of all ranks, and by rank where among them its part is.
    fn gather<T: Element>(&self, call: &Call<'_>, values: &[T]) -> Result<(Vec<T>, Vec<Range<usize>>)> {
        let mut lens = vec![0; self.world_size()];
        lens[self.rank()] = values.len() as i64;
        self.agree(call, &mut lens)?;

        // Host after host, what the ranks of one host have is one block.
        let order = self.topology.ranks_by_host();
        let mut places = vec![0..0; self.world_size()];
        let mut len_sum = 0_usize;
        for &rank in &order {
            let end = usize::try_from(lens[rank]).ok().and_then(|len| len_sum.checked_add(len));
            let fits =
                end.filter(|end| end.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize));
            let end = fits.ok_or_else(|| Error::Mismatch {
                rank,
                expected: "values that fit in memory".into(),
                found: format!("{} values", lens[rank]),
            })?;
            places[rank] = len_sum..end;
            len_sum = end;
        }

        let mut gathered = vec![T::default(); len_sum];
        call.bytes.set(size_of_val(gathered.as_slice()));
        gathered[places[self.rank()].clone()].copy_from_slice(values);
        if let Some(segment) = &self.segment {
            let local_places: Vec<_> = self.topology.local_ranks().iter().map(|&rank| places[rank].clone()).collect();
            within_host::all_gather(segment, call, &mut gathered, &local_places)?;
        }
        if let Some(leaders) = self.leaders() {
            if self.topology.is_leader() {
                let blocks = self.blocks_by_host(|rank| places[rank].len());
                leaders.ring_all_gather(call, &mut gathered, &blocks)?;
            }
            self.broadcast_host(call, &mut gathered, 0)?;
        }
        if order.is_sorted() {
            return Ok((gathered, places));
        }
        let mut in_rank_order = Vec::with_capacity(len_sum);
        let place_in_order = |place: &Range<usize>| {
            in_rank_order.extend_from_slice(&gathered[place.clone()]);
            in_rank_order.len() - place.len()..in_rank_order.len()
        };
        let places = places.iter().map(place_in_order).collect();
        Ok((in_rank_order, places))
    }
}
