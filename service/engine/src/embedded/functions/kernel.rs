//! Functions over Arrow arrays as DataFusion scalar functions.
//!
//! Types are settled when an expression is resolved, so a kernel is made for one call: it knows its result's field and
//! takes its arguments as they are. Two kernels are equal when their names and result types are, therefore a kernel's name
//! holds everything its body has captured.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::Result;
use crate::embedded::expression::Typed;

/// Arrays of one length in, one of that length out.
pub type Body = Arc<dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync>;

/// What a kernel is, apart from its body.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Name and captured parameters.
    pub name: String,
    pub output: FieldRef,
    /// Whether a row's value can make it fail: then it must not be evaluated for rows that a condition excludes.
    pub raises: bool,
    /// Whether it may give another value for the same arguments.
    pub volatile: bool,
}

impl Kernel {
    pub fn new(name: impl Into<String>, data_type: DataType, nullable: bool) -> Kernel {
        let output = Arc::new(Field::new("", data_type, nullable));
        Kernel { name: name.into(), output, raises: false, volatile: false }
    }

    /// Applies the kernel to arguments.
    pub fn call(
        self,
        arguments: Vec<Typed>,
        body: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Typed {
        let field = self.output.clone();
        let volatility = if self.volatile { Volatility::Volatile } else { Volatility::Immutable };
        // DataFusion takes "any arguments" for at least one.
        let signature =
            if arguments.is_empty() { Signature::nullary(volatility) } else { Signature::variadic_any(volatility) };
        let function = KernelFunction { signature, kernel: self, body: Arc::new(body) };
        let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
        let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::new_from_impl(function)), arguments);
        Typed { expr: Expr::ScalarFunction(call), field }
    }
}

/// A kernel that gives null for a null argument only, and never fails.
pub fn strict(
    name: impl Into<String>,
    arguments: Vec<Typed>,
    data_type: DataType,
    body: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Typed {
    let nullable = arguments.iter().any(Typed::nullable);
    Kernel::new(name, data_type, nullable).call(arguments, body)
}

/// A kernel that may give null for arguments that are not null, and never fails.
pub fn nullable(
    name: impl Into<String>,
    arguments: Vec<Typed>,
    data_type: DataType,
    body: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Typed {
    Kernel::new(name, data_type, true).call(arguments, body)
}

/// A kernel that a row's value can make fail.
pub fn raising(
    name: impl Into<String>,
    arguments: Vec<Typed>,
    data_type: DataType,
    body: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Typed {
    let nullable = arguments.iter().any(Typed::nullable);
    Kernel { raises: true, ..Kernel::new(name, data_type, nullable) }.call(arguments, body)
}

/// Whether evaluating the expression can fail for a row's values.
pub fn can_raise(expr: &Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    expr.exists(|node| {
        Ok(match node {
            Expr::ScalarFunction(call) => {
                let function: &dyn std::any::Any = call.func.inner().as_ref();
                function.downcast_ref::<KernelFunction>().is_some_and(|function| function.kernel.raises)
            }
            _ => false,
        })
    })
    .unwrap_or(false)
}

#[derive(Clone)]
struct KernelFunction {
    kernel: Kernel,
    signature: Signature,
    body: Body,
}

impl std::fmt::Debug for KernelFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelFunction").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

impl PartialEq for KernelFunction {
    fn eq(&self, other: &KernelFunction) -> bool {
        self.kernel.name == other.kernel.name && self.kernel.output == other.kernel.output
    }
}

impl Eq for KernelFunction {}

impl Hash for KernelFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kernel.name.hash(state);
        self.kernel.output.data_type().hash(state);
    }
}

impl ScalarUDFImpl for KernelFunction {
    fn name(&self) -> &str {
        &self.kernel.name
    }

    /// Two kernels that differ must not name two columns alike, so the type is part of the name.
    fn schema_name(&self, arguments: &[Expr]) -> datafusion::common::Result<String> {
        let arguments: Vec<String> = arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
        Ok(format!("{}:{}({})", self.kernel.name, self.kernel.output.data_type(), arguments.join(",")))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> datafusion::common::Result<DataType> {
        Ok(self.kernel.output.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> datafusion::common::Result<FieldRef> {
        Ok(Arc::new(self.kernel.output.as_ref().clone().with_name(&self.kernel.name)))
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> datafusion::common::Result<ColumnarValue> {
        let all_scalar = call.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        if all_scalar && !self.kernel.volatile {
            let arguments: Vec<ArrayRef> = ColumnarValue::values_to_arrays(&call.args)?;
            let result = (self.body)(&arguments, 1)?;
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        let arguments = call
            .args
            .into_iter()
            .map(|argument| argument.into_array(call.number_rows))
            .collect::<datafusion::common::Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array((self.body)(&arguments, call.number_rows)?))
    }
}

/// Applies a function of DataFusion's whose arguments have the types it wants, and says what it gives.
pub fn foreign(function: Arc<ScalarUDF>, arguments: Vec<Typed>, data_type: DataType, nullable: bool) -> Typed {
    let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
    let call = Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments));
    Typed::new(call, data_type, nullable)
}
