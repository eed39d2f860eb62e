//! Barrier: nobody goes on before everybody has come.

use crate::{
    element::Element,
    error::Result,
    group::Group,
    signature::{Collective, Signature},
};

impl Group {
    /// Returns when all ranks have called it.
    pub fn barrier(&self) -> Result<()> {
        let signature = Signature::new(Collective::Barrier, u8::TYPE, 0);
        self.run(signature, |call| self.agree(call, &mut []))
    }
}
