//! Literals there and back.

use arrow::datatypes::Field;
use datafusion::common::ScalarValue;
use spark_connect_proto as proto;
use spark_connect_proto::data_type::Kind;
use spark_connect_proto::expression::Literal;
use spark_connect_proto::expression::literal::{self, LiteralType, specialized_array};
use udt::{VectorArray, VectorRow};

use super::{literal_from_scalar, scalar_from_literal};
use crate::Error;
use crate::data_type::{field_to_proto, parse_type, simple_string};

fn literal(literal_type: LiteralType) -> Literal {
    Literal { data_type: None, literal_type: Some(literal_type) }
}

fn round_trip(literal: &Literal) -> (ScalarValue, Field) {
    let (scalar, field) = scalar_from_literal(literal).unwrap();
    assert_eq!(&literal_from_scalar(&scalar, &field).unwrap(), literal);
    (scalar, field)
}

fn type_of(text: &str) -> proto::DataType {
    field_to_proto(&parse_type(text).unwrap())
}

fn decimal(value: &str, precision: i32, scale: i32) -> LiteralType {
    LiteralType::Decimal(literal::Decimal { value: value.into(), precision: Some(precision), scale: Some(scale) })
}

#[test]
fn atomic_literals_come_back_as_they_were() {
    for (literal_type, simple) in [
        (LiteralType::Boolean(true), "boolean"),
        (LiteralType::Byte(-1), "tinyint"),
        (LiteralType::Short(300), "smallint"),
        (LiteralType::Integer(7), "int"),
        (LiteralType::Long(1 << 40), "bigint"),
        (LiteralType::Float(1.5), "float"),
        (LiteralType::Double(2.5), "double"),
        (decimal("12.50", 10, 2), "decimal(10,2)"),
        (LiteralType::String("x".into()), "string"),
        (LiteralType::Binary(vec![1, 2].into()), "binary"),
        (LiteralType::Date(3), "date"),
        (LiteralType::Timestamp(4), "timestamp"),
        (LiteralType::TimestampNtz(5), "timestamp_ntz"),
        (LiteralType::Time(literal::Time { nano: 6000, precision: Some(3) }), "time(3)"),
        (LiteralType::DayTimeInterval(7), "interval day to second"),
        (LiteralType::YearMonthInterval(8), "interval year to month"),
        (
            LiteralType::CalendarInterval(literal::CalendarInterval { months: 1, days: 2, microseconds: 3 }),
            "interval",
        ),
        (LiteralType::Null(type_of("array<int>")), "array<int>"),
    ] {
        let (scalar, field) = round_trip(&literal(literal_type));
        assert_eq!(simple_string(&field), simple);
        assert_eq!(field.is_nullable(), scalar.is_null());
    }
}

#[test]
fn decimals_are_as_wide_as_they_need() {
    for (value, precision, scale, expected) in [
        ("1.5", 10, 0, "decimal(10,1)"),
        ("0.001", 1, 0, "decimal(3,3)"),
        ("1E+3", 1, 0, "decimal(4,0)"),
        ("-0", 10, 0, "decimal(10,0)"),
        ("1.25E-3", 5, 0, "decimal(5,5)"),
        ("99999999999999999999999999999999999999", 10, 0, "decimal(38,0)"),
    ] {
        let (_, field) = scalar_from_literal(&literal(decimal(value, precision, scale))).unwrap();
        assert_eq!(simple_string(&field), expected, "{value}");
    }
    for value in ["", "x", "1.2.3", "1e99999999999", "999999999999999999999999999999999999999", "9E40", "-", "1E-40"] {
        let result = scalar_from_literal(&literal(decimal(value, 10, 0)));
        assert!(matches!(result, Err(Error::InvalidPlan { .. })), "{value}");
    }
}

#[expect(deprecated, reason = "clients still send the type there")]
fn array(element: &str, elements: Vec<Literal>) -> Literal {
    literal(LiteralType::Array(literal::Array { element_type: Some(type_of(element)), elements }))
}

#[test]
fn nested_literals_come_back_as_they_were() {
    let double = |value| literal(LiteralType::Double(value));
    let inner = |values: &[f64]| array("double", values.iter().copied().map(double).collect());
    let nested = array("array<double>", vec![inner(&[1.0]), inner(&[]), inner(&[2.0, 3.0])]);
    assert_eq!(simple_string(&round_trip(&nested).1), "array<array<double>>");
    assert_eq!(simple_string(&round_trip(&array("string", vec![])).1), "array<string>");
    #[expect(deprecated, reason = "clients still send the types there")]
    let map = literal(LiteralType::Map(literal::Map {
        key_type: Some(type_of("string")),
        value_type: Some(type_of("int")),
        keys: vec![literal(LiteralType::String("a".into())), literal(LiteralType::String("b".into()))],
        values: vec![literal(LiteralType::Integer(1)), literal(LiteralType::Null(type_of("int")))],
    }));
    assert_eq!(simple_string(&round_trip(&map).1), "map<string,int>");
    #[expect(deprecated, reason = "clients still send the type there")]
    let structure = literal(LiteralType::Struct(literal::Struct {
        struct_type: Some(type_of("struct<a:int,b:string>")),
        elements: vec![literal(LiteralType::Integer(1)), literal(LiteralType::String("x".into()))],
    }));
    assert_eq!(simple_string(&round_trip(&structure).1), "struct<a:int,b:string>");
}

#[test]
fn a_type_at_the_root_types_what_is_inside() {
    let elements = vec![literal(LiteralType::Integer(1)), literal(LiteralType::Integer(2))];
    #[expect(deprecated, reason = "the message has the field")]
    let array = LiteralType::Array(literal::Array { element_type: None, elements });
    let root = Literal { data_type: Some(type_of("array<bigint>")), literal_type: Some(array) };
    let (scalar, field) = scalar_from_literal(&root).unwrap();
    assert_eq!(simple_string(&field), "array<bigint>");
    assert_eq!(scalar.to_string(), "[1, 2]");
}

#[test]
fn a_vector_literal_is_a_vector() {
    let udt = proto::data_type::Udt {
        r#type: "udt".into(),
        jvm_class: Some(udt::field::VECTOR_JVM_CLASS.into()),
        ..Default::default()
    };
    let vector_type = proto::DataType { kind: Some(Kind::Udt(Box::new(udt))) };
    let doubles = specialized_array::ValueType::Doubles(proto::Doubles { values: vec![1.0, 2.0] });
    let ints = specialized_array::ValueType::Ints(proto::Ints { values: vec![0, 3] });
    let compact = |value_type| {
        literal(LiteralType::SpecializedArray(literal::SpecializedArray { value_type: Some(value_type) }))
    };
    let null = || literal(LiteralType::Null(type_of("void")));
    #[expect(deprecated, reason = "clients still send the type there")]
    let vector = |elements: Vec<Literal>| {
        literal(LiteralType::Struct(literal::Struct { struct_type: Some(vector_type.clone()), elements }))
    };
    let (scalar, field) =
        round_trip_vector(&vector(vec![literal(LiteralType::Byte(1)), null(), null(), compact(doubles.clone())]));
    assert!(udt::field::is_vector(&field));
    let array = scalar.to_array().unwrap();
    assert_eq!(VectorArray::try_new(&array).unwrap().row(0).unwrap(), VectorRow::Dense(&[1.0, 2.0]));
    let sparse =
        vec![literal(LiteralType::Byte(0)), literal(LiteralType::Integer(4)), compact(ints), compact(doubles)];
    let (scalar, _) = round_trip_vector(&vector(sparse));
    let array = scalar.to_array().unwrap();
    assert_eq!(
        VectorArray::try_new(&array).unwrap().row(0).unwrap(),
        VectorRow::Sparse { size: 4, indices: &[0, 3], values: &[1.0, 2.0] }
    );
    assert!(matches!(scalar_from_literal(&vector(vec![null()])), Err(Error::InvalidPlan { .. })));
}

/// Elements come back as they went in; the type may have gained its Python class.
fn round_trip_vector(literal: &Literal) -> (ScalarValue, Field) {
    let (scalar, field) = scalar_from_literal(literal).unwrap();
    let back = literal_from_scalar(&scalar, &field).unwrap();
    let (Some(LiteralType::Struct(back)), Some(LiteralType::Struct(there))) = (back.literal_type, &literal.literal_type)
    else {
        panic!("a vector is a struct")
    };
    assert_eq!(&back.elements, &there.elements);
    (scalar, field)
}

#[test]
fn literals_that_contradict_themselves_are_refused() {
    #[expect(deprecated, reason = "the message has the fields")]
    let uneven = LiteralType::Map(literal::Map {
        key_type: None,
        value_type: None,
        keys: vec![literal(LiteralType::Integer(1))],
        values: vec![],
    });
    let mixed = array("int", vec![literal(LiteralType::String("x".into()))]);
    for bad in [literal(uneven), mixed, Literal::default(), literal(LiteralType::Byte(300))] {
        assert!(matches!(scalar_from_literal(&bad), Err(Error::InvalidPlan { .. })), "{bad:?}");
    }
    assert_eq!(simple_string(&scalar_from_literal(&array("int", vec![])).unwrap().1), "array<int>");
}
