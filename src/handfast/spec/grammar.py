"""Spark's grammar of conditions, as a dialect of sqlglot: what binds tighter, what a literal is, calls by name."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sqlglot import TokenType, exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.parsers.databricks import DatabricksParser

_COMPARISONS = {**DatabricksParser.EQUALITY, **DatabricksParser.COMPARISON}
_TYPED_LITERALS = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_TYPES = {
    *("BOOLEAN", "TINYINT", "BYTE", "SMALLINT", "SHORT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE"),
    *("DECIMAL", "DEC", "NUMERIC", "STRING", "CHARACTER", "CHAR", "VARCHAR", "BINARY", "DATE", "TIME", "TIMESTAMP"),
    *("TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "INTERVAL", "VOID", "VARIANT", "ARRAY", "STRUCT", "MAP"),
}
_SUFFIXES = set(Databricks.Tokenizer.NUMERIC_LITERALS)  # 7Y comes as 7 :: Y
SUFFIX = "suffix"  # marks the type of 7Y, which CAST(7 AS TINYINT) has too
_UNITS = {
    unit + plural
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
    for plural in ("", "S")
}
_NUMBER = re.compile(r"\s*[+-]?\s*(\d+\.?\d*|\.\d+)\s*")


class SparkParser(DatabricksParser):
    """Reads a condition by the rules `booleanExpression`, `predicate` and `valueExpression` of Spark's own grammar.

    All comparisons are one level, from left to right, and bind tighter than IN, BETWEEN, LIKE and IS, of which a value
    has at most one; then come NOT, AND, OR. sqlglot has other levels, and takes more than Spark does.
    """

    FUNCTIONS: ClassVar[Any] = {}  # a call is its name and its arguments, as they were written
    FUNCTION_PARSERS: ClassVar[Any] = {
        **{name: DatabricksParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY")},
        "TRIM": lambda self: self._trim(),
        "SUBSTRING": lambda self: self._substring("SUBSTRING"),
        "SUBSTR": lambda self: self._substring("SUBSTR"),
        "POSITION": lambda self: self._position(),
        "DATEDIFF": lambda self: self._date_diff("DATEDIFF"),
        "DATE_DIFF": lambda self: self._date_diff("DATE_DIFF"),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {
        "ANY": DatabricksParser.NO_PAREN_FUNCTION_PARSERS["ANY"],
        "CASE": lambda self: self._parse_case(),
    }
    RANGE_PARSERS: ClassVar[Any] = {
        TokenType.LIKE: DatabricksParser.RANGE_PARSERS[TokenType.LIKE],
        TokenType.ILIKE: DatabricksParser.RANGE_PARSERS[TokenType.ILIKE],
        TokenType.RLIKE: DatabricksParser.RANGE_PARSERS[TokenType.RLIKE],
        TokenType.BETWEEN: lambda self, this: self._parse_between(this),
        TokenType.IN: lambda self, this: self._parse_in(this),
    }
    PRIMARY_PARSERS: ClassVar[Any] = {
        **DatabricksParser.PRIMARY_PARSERS,
        TokenType.HEX_STRING: lambda self, token: self._hexadecimal(token),
    }
    TERM: ClassVar[Any] = {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub, TokenType.DPIPE: exp.DPipe}
    FACTOR: ClassVar[Any] = {
        TokenType.STAR: exp.Mul,
        TokenType.SLASH: exp.Div,
        TokenType.MOD: exp.Mod,
        TokenType.DIV: exp.IntDiv,
    }
    UNARY_PARSERS: ClassVar[Any] = {
        token: DatabricksParser.UNARY_PARSERS[token] for token in (TokenType.PLUS, TokenType.DASH, TokenType.TILDE)
    }

    # -- what binds tighter ----------------------------------------------------------------------

    def _parse_equality(self, parse_is: bool = True) -> Any:
        """A part of AND: NOT of one, or a value with at most one predicate behind it."""
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._parse_equality()))
        this = self._parse_bitwise()
        if self._match(TokenType.IS):
            return self._parse_is(this)
        negated = self._match_word("NOT")
        if self._match_set(self.RANGE_PARSERS):
            this = self.RANGE_PARSERS[self._prev.token_type](self, this)
            return self.expression(exp.Not(this=this)) if negated else this
        if negated:
            self.raise_error("Expected IN, BETWEEN or LIKE after NOT")
        return this

    def _parse_bitwise(self) -> Any:
        """A value: arithmetic, compared from left to right."""
        this = super()._parse_bitwise()
        while self._match_set(_COMPARISONS):
            kind = _COMPARISONS[self._prev.token_type]
            this = self.expression(kind(this=this, expression=super()._parse_bitwise()))
        return this

    def _parse_is(self, this: Any) -> Any:
        negated = self._match_word("NOT")
        if self._match_text_seq("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.expression(kind(this=this, expression=self._parse_bitwise()))
        what = self._parse_null() or self._parse_boolean()
        if what is None:
            self.raise_error("Expected NULL, TRUE, FALSE or DISTINCT FROM after IS")
        found = self.expression(exp.Is(this=this, expression=what))
        return self.expression(exp.Not(this=found)) if negated else found

    def _parse_between(self, this: Any) -> exp.Between:
        low = self._parse_bitwise()
        self._expect(TokenType.AND)
        return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

    def _parse_in(self, this: Any, alias: bool = False) -> exp.In:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.raise_error("Expected ( after IN")
        return super()._parse_in(this)

    # -- calls -----------------------------------------------------------------------------------

    def _parse_case(self) -> exp.Case:
        value = None if self._match(TokenType.WHEN, advance=False) else self._parse_disjunction()
        branches = []
        while self._match(TokenType.WHEN):
            when = self._parse_disjunction()
            self._expect(TokenType.THEN)
            branches.append(self.expression(exp.If(this=when, true=self._parse_disjunction())))
        if not branches:
            self.raise_error("Expected WHEN")
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        self._expect(TokenType.END)
        return self.expression(exp.Case(this=value, ifs=branches, default=default))

    def _trim(self) -> exp.Anonymous:
        """TRIM(a, …), or TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)."""
        names = {"BOTH": "TRIM", "LEADING": "LTRIM", "TRAILING": "RTRIM"}
        name = names[self._prev.text.upper()] if self._match_texts(names) else None
        arguments: list[Any] = [] if self._match(TokenType.FROM, advance=False) else self._parse_function_args()
        if self._match(TokenType.FROM):
            arguments.append(self._parse_bitwise())
        elif name is not None:
            self.raise_error("Expected FROM")
        return self._call(name or "TRIM", arguments)

    def _substring(self, name: str) -> exp.Anonymous:
        """SUBSTRING(text, position, length), with FROM and FOR in place of the commas."""
        arguments: list[Any] = self._parse_function_args()
        if len(arguments) == 1 and self._match(TokenType.FROM):
            arguments += self._parse_function_args()
        if len(arguments) == 2 and self._match(TokenType.FOR):
            arguments.append(self._parse_bitwise())
        return self._call(name, arguments)

    def _position(self) -> exp.Anonymous:
        """POSITION(part, text), or POSITION(part IN text)."""
        arguments: list[Any] = self._parse_csv(self._parse_bitwise)
        if len(arguments) == 1 and self._match(TokenType.IN):
            arguments.append(self._parse_bitwise())
        return self._call("POSITION", arguments)

    def _date_diff(self, name: str) -> exp.Anonymous | exp.TimestampDiff:
        """DATEDIFF(end, start), or DATEDIFF(unit, start, end)."""
        arguments = self._parse_function_args()
        unit = arguments[0] if len(arguments) == 3 else None
        if isinstance(unit, exp.Column) and not unit.table and unit.name.upper() in _UNITS:
            _, start, end = arguments
            return self.expression(exp.TimestampDiff(this=end, expression=start, unit=exp.var(unit.name.upper())))
        return self._call(name, arguments)

    def _call(self, name: str, arguments: list[Any]) -> exp.Anonymous:
        return self.expression(exp.Anonymous(this=name, expressions=arguments))

    # -- literals and types ----------------------------------------------------------------------

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> exp.Interval | None:
        """INTERVAL '1 hour 30 minutes', or INTERVAL 1 HOUR 30 MINUTES, which becomes the same text."""
        start = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        parts = []
        while (part := self._interval_part()) is not None:
            parts.append(part)
        if len(parts) == 1:
            value, unit = parts[0]
            return self.expression(exp.Interval(this=exp.Literal.string(value), unit=exp.var(unit)))
        if parts:
            return self.expression(exp.Interval(this=exp.Literal.string(" ".join(map(" ".join, parts)))))
        if self._match(TokenType.STRING):
            return self.expression(exp.Interval(this=exp.Literal.string(self._prev.text)))
        self._retreat(start)  # a column of that name
        return None

    def _interval_part(self) -> tuple[str, str] | None:
        """A number, which may be quoted, and its unit; None, and nothing read, where there is none."""
        start = self._index
        sign = self._prev.text if self._match_set((TokenType.PLUS, TokenType.DASH)) else ""
        if self._match_set((TokenType.NUMBER, TokenType.STRING)):
            value = sign + self._prev.text
            if _NUMBER.fullmatch(value) and self._match_texts(_UNITS):
                return re.sub(r"\s", "", value), self._prev.text.upper()
        self._retreat(start)
        return None

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> Any:
        """The name of a type; before a value (`check_func`) only where a literal follows that names its type."""
        name = self._curr.text.upper() if self._curr else ""
        if check_func and not (name in _TYPED_LITERALS and self._next.token_type == TokenType.STRING):
            return None
        if name not in _TYPES and name not in _SUFFIXES:
            self.raise_error(f"{name} is no type of Spark's")
        return super()._parse_types(check_func, schema, allow_identifiers, with_collation)

    def _hexadecimal(self, token: Any) -> exp.HexString:
        if self.sql[token.start] == "0":
            self.raise_error("0x1F is no literal of Spark's, X'1F' is", token)
        return self.expression(exp.HexString(this=token.text))

    def _parse_dcolon(self) -> Any:
        """The type behind `::`; that of a number's suffix is marked, for a number that names its type has its range."""
        suffixed = self._curr.text.upper() in _SUFFIXES
        to = self._parse_types()
        if suffixed and to is not None:
            to.meta[SUFFIX] = True
        return to

    # -- tokens ----------------------------------------------------------------------------------

    def _match_word(self, word: str) -> bool:
        """Whether the word comes next, as a word: `!` is no NOT here."""
        return bool(self._match_text_seq(word))

    def _expect(self, token: TokenType) -> None:
        if not self._match(token):
            self.raise_error(f"Expected {token.value}")


class SparkConditions(Databricks):
    """Conditions as Spark's ANSI mode reads them; Databricks' dialect is that mode: CAST is not TRY_CAST there."""

    Parser = SparkParser
