//! libtorch beyond tch: see `native/torch.cpp`. All that is unsafe about it stays in this file.

use std::ffi::{CStr, CString, c_char, c_void};

use tch::Tensor;

use crate::{Error, Result};

unsafe extern "C" {
    fn phalanx_torch_error() -> *const c_char;
    fn phalanx_set_ready_hook(
        tensor: *mut c_void,
        call: extern "C" fn(*mut c_void, usize),
        context: *mut c_void,
        index: usize,
    ) -> bool;
    fn phalanx_clear_ready_hook(tensor: *mut c_void) -> bool;
    fn phalanx_set_gradient(tensor: *mut c_void, gradient: *mut c_void) -> bool;
    fn phalanx_clear_gradient(tensor: *mut c_void) -> bool;
    fn phalanx_set_values(tensor: *mut c_void, values: *mut c_void) -> bool;
    fn phalanx_set_autocast(is_enabled: bool) -> bool;
    fn phalanx_module_load(bytes: *const c_char, length: usize) -> *mut c_void;
    fn phalanx_module_free(module: *mut c_void);
    fn phalanx_module_define(
        source: *const c_char,
        names: *const *const c_char,
        values: *const *mut c_void,
        num_values: usize,
    ) -> *mut c_void;
    fn phalanx_module_num_parameters(module: *const c_void) -> usize;
    fn phalanx_module_num_buffers(module: *const c_void) -> usize;
    fn phalanx_module_parameter_name(module: *const c_void, index: usize) -> *const c_char;
    fn phalanx_module_parameter(module: *const c_void, index: usize) -> *mut c_void;
    fn phalanx_module_buffer(module: *const c_void, index: usize) -> *mut c_void;
    fn phalanx_module_train(module: *mut c_void, is_training: bool) -> bool;
    fn phalanx_module_forward(module: *const c_void, inputs: *const *mut c_void, num_inputs: usize) -> *mut c_void;
    fn phalanx_module_save(
        module: *const c_void,
        take: extern "C" fn(*mut c_void, *const c_char, usize),
        context: *mut c_void,
    ) -> bool;
}

fn pointer(tensor: &Tensor) -> *mut c_void {
    tensor.as_ptr().cast_mut().cast()
}

fn last_error() -> String {
    // SAFETY: the function returns the text of this thread, which is valid until the next call that fails.
    let text = unsafe { CStr::from_ptr(phalanx_torch_error()) };
    text.to_string_lossy().trim().to_string()
}

fn check(is_done: bool) -> Result<()> {
    if is_done { Ok(()) } else { Err(Error::Tensor { message: last_error() }) }
}

/// Takes over a tensor that libtorch made; null means that it failed.
fn owned(tensor: *mut c_void) -> Option<Tensor> {
    // SAFETY: the functions that return tensors hand over a new `at::Tensor`, which is what tch's tensors own.
    (!tensor.is_null()).then(|| unsafe { Tensor::from_ptr(tensor.cast()) })
}

/// Gradients of `parameter` are from now on added to `gradient`, of the same shape.
///
/// # Errors
/// [`Error::Tensor`], here and below.
pub fn set_gradient(parameter: &Tensor, gradient: &Tensor) -> Result<()> {
    // SAFETY: both are tensors of tch, alive for the call; libtorch takes references of its own.
    check(unsafe { phalanx_set_gradient(pointer(parameter), pointer(gradient)) })
}

pub fn clear_gradient(parameter: &Tensor) -> Result<()> {
    // SAFETY: as above.
    check(unsafe { phalanx_clear_gradient(pointer(parameter)) })
}

/// `parameter` has from now on the values of `values`, in their memory.
pub fn set_values(parameter: &Tensor, values: &Tensor) -> Result<()> {
    // SAFETY: as above.
    check(unsafe { phalanx_set_values(pointer(parameter), pointer(values)) })
}

/// What hears that the gradient of a parameter is ready.
pub trait Ready {
    /// Runs within the backward pass, on its thread. Must not panic.
    fn is_ready(&self, parameter: usize);
}

/// Hooks on parameters, taken off when this is dropped.
pub struct ReadyHooks<'a, R: Ready> {
    parameters: &'a [Tensor],
    _ready: &'a R,
}

impl<'a, R: Ready> ReadyHooks<'a, R> {
    /// # Errors
    /// [`Error::Tensor`]
    pub fn new(parameters: &'a [Tensor], ready: &'a R) -> Result<ReadyHooks<'a, R>> {
        let hooks = ReadyHooks { parameters, _ready: ready };
        for (index, parameter) in parameters.iter().enumerate() {
            let context = std::ptr::from_ref(ready).cast_mut().cast();
            // SAFETY: `ready` outlives the hooks, which are taken off when the result is dropped.
            check(unsafe { phalanx_set_ready_hook(pointer(parameter), call_ready::<R>, context, index) })?;
        }
        Ok(hooks)
    }
}

extern "C" fn call_ready<R: Ready>(context: *mut c_void, parameter: usize) {
    // SAFETY: `context` is the `ready` that the hooks were made with, and outlives them.
    let ready = unsafe { &*context.cast_const().cast::<R>() };
    ready.is_ready(parameter);
}

impl<R: Ready> Drop for ReadyHooks<'_, R> {
    fn drop(&mut self) {
        for parameter in self.parameters {
            // SAFETY: the parameters are alive. That a hook cannot be taken off has no cause that is known.
            unsafe { phalanx_clear_ready_hook(pointer(parameter)) };
        }
    }
}

/// Runs `body` with bf16 autocast on this thread, if it is wanted.
pub fn with_autocast<T>(is_wanted: bool, body: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: sets a flag of this thread.
            unsafe { phalanx_set_autocast(self.0) };
        }
    }
    if !is_wanted {
        return body();
    }
    // SAFETY: as above.
    let _restore = Restore(unsafe { phalanx_set_autocast(true) });
    body()
}

/// A TorchScript module.
pub struct ScriptModule(*mut c_void);

// SAFETY: the module has no tie to a thread. Shared references only run `forward` and read, which libtorch allows from
// several threads at once as long as nobody trains it.
unsafe impl Send for ScriptModule {}
// SAFETY: as above; whatever changes the module takes `&mut self`.
unsafe impl Sync for ScriptModule {}

impl Drop for ScriptModule {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `phalanx_module_load` or `_define`, and is freed once.
        unsafe { phalanx_module_free(self.0) };
    }
}

impl ScriptModule {
    /// Loads what `torch.jit.save` wrote.
    ///
    /// # Errors
    /// [`Error::ModuleFailed`]: the bytes are no TorchScript, or one of operators that this libtorch does not have.
    pub fn load(bytes: &[u8]) -> Result<ScriptModule> {
        // SAFETY: the bytes are alive for the call, which copies them.
        let module = unsafe { phalanx_module_load(bytes.as_ptr().cast(), bytes.len()) };
        ScriptModule::checked(module, "cannot be loaded")
    }

    /// Makes a module of TorchScript methods (`def forward(self, x): ...`) and initial values of its parameters.
    ///
    /// # Errors
    /// [`Error::ModuleFailed`]: the source does not compile.
    pub fn define(source: &str, parameters: &[(&str, Tensor)]) -> Result<ScriptModule> {
        let text = |text: &str| CString::new(text).map_err(|_| failed("has a source with a null character", ""));
        let source = text(source)?;
        let names = parameters.iter().map(|(name, _)| text(name)).collect::<Result<Vec<CString>>>()?;
        let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect::<Vec<_>>();
        let values: Vec<*mut c_void> = parameters.iter().map(|(_, value)| pointer(value)).collect();
        // SAFETY: names and values are alive for the call, which copies them, and there are as many of both.
        let module =
            unsafe { phalanx_module_define(source.as_ptr(), names.as_ptr(), values.as_ptr(), parameters.len()) };
        ScriptModule::checked(module, "cannot be compiled")
    }

    fn checked(module: *mut c_void, what: &str) -> Result<ScriptModule> {
        if module.is_null() { Err(failed(what, &last_error())) } else { Ok(ScriptModule(module)) }
    }

    /// The parameters by name, each once even if the module uses it twice; references to the module's own tensors.
    pub fn parameters(&self) -> Vec<(String, Tensor)> {
        // SAFETY: the module is alive, and indices are below the number it states.
        let num = unsafe { phalanx_module_num_parameters(self.0) };
        let parameter = |index| {
            // SAFETY: as above; the name lives as long as the module, and is copied.
            let name = unsafe { CStr::from_ptr(phalanx_module_parameter_name(self.0, index)) };
            // SAFETY: as above.
            let tensor = owned(unsafe { phalanx_module_parameter(self.0, index) })?;
            Some((name.to_string_lossy().into_owned(), tensor))
        };
        (0..num).filter_map(parameter).collect()
    }

    /// The buffers, such as running means: references to the module's own tensors.
    pub fn buffers(&self) -> Vec<Tensor> {
        // SAFETY: as above.
        let num = unsafe { phalanx_module_num_buffers(self.0) };
        // SAFETY: as above.
        (0..num).filter_map(|index| owned(unsafe { phalanx_module_buffer(self.0, index) })).collect()
    }

    /// Switches between training and evaluation, as dropout and batch normalisation tell them apart.
    ///
    /// # Errors
    /// [`Error::Tensor`]
    pub fn set_training(&mut self, is_training: bool) -> Result<()> {
        // SAFETY: the module is alive, and nobody else uses it.
        check(unsafe { phalanx_module_train(self.0, is_training) })
    }

    /// What `forward` returns for these arguments.
    ///
    /// # Errors
    /// [`Error::ModuleFailed`]: what the module raised, or that it returned something else than one tensor.
    pub fn forward(&self, inputs: &[&Tensor]) -> Result<Tensor> {
        let inputs: Vec<*mut c_void> = inputs.iter().map(|input| pointer(input)).collect();
        // SAFETY: module and inputs are alive for the call.
        let output = owned(unsafe { phalanx_module_forward(self.0, inputs.as_ptr(), inputs.len()) });
        output.ok_or_else(|| failed("failed in forward", &last_error()))
    }

    /// What `torch.jit.load` reads.
    ///
    /// # Errors
    /// [`Error::ModuleFailed`]
    pub fn save(&self) -> Result<Vec<u8>> {
        extern "C" fn take(bytes: *mut c_void, data: *const c_char, length: usize) {
            // SAFETY: `bytes` is the vector below, `data` has `length` bytes, and neither is used by anybody else.
            unsafe { (*bytes.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(data.cast(), length)) };
        }
        let mut bytes: Vec<u8> = Vec::new();
        // SAFETY: `take` is called during the call only.
        let is_done = unsafe { phalanx_module_save(self.0, take, std::ptr::from_mut(&mut bytes).cast()) };
        if is_done { Ok(bytes) } else { Err(failed("cannot be saved", &last_error())) }
    }
}

fn failed(what: &str, reason: &str) -> Error {
    Error::ModuleFailed { what: what.into(), reason: reason.into() }
}
