
# From here on the same in every release.

steps_folder <- local({
  sourced <- Filter(Negate(is.null), lapply(sys.frames(), function(frame) frame$ofile))
  started <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
  if (length(sourced)) dirname(sourced[[length(sourced)]]) else if (length(started)) dirname(started[1]) else "."
})

steps_refuse <- function(...) stop(paste0(...), call. = FALSE)

steps_attribute <- function(name) {
  names <- vapply(steps_release$attributes, function(each) each$name, "")
  if (!name %in% names) {
    near <- names[order(utils::adist(name, names))][1]
    steps_refuse("there is no attribute '", name, "'; did you mean '", near, "'?")
  }
  steps_release$attributes[[match(name, names)]]
}

# The values of one set: texts of categories, numbers, days since 1970-01-01, minutes since midnight; NA where a value is missing.
steps_read <- function(number) {
  names <- vapply(steps_release$attributes, function(each) each$name, "")
  csv <- file.path(steps_folder, paste0("synthetic-", number, ".csv"))
  parquet <- file.path(steps_folder, paste0("synthetic-", number, ".parquet"))
  if (file.exists(csv)) {
    set <- utils::read.csv(csv, colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8")
    written <- "written"
  } else if (!file.exists(parquet)) {
    steps_refuse("neither ", csv, " nor the Parquet file is there; keep analysis.R in the release's folder")
  } else if (requireNamespace("arrow", quietly = TRUE)) {
    set <- as.data.frame(arrow::read_parquet(parquet))
    written <- "labels"
  } else {
    steps_refuse("this release has its sets as Parquet alone: install.packages(\"arrow\"), or make CSV files of them")
  }
  names(set) <- names # of all columns, what is derived last
  set[names] <- lapply(steps_release$attributes, function(attribute) steps_values(set[[attribute$name]], attribute, written))
  set[names]
}

steps_values <- function(column, attribute, written) {
  if (attribute$kind %in% c("categorical", "ordinal")) {
    return(attribute$labels[match(enc2utf8(as.character(column)), enc2utf8(attribute[[written]]))])
  }
  if (attribute$kind == "date") return(as.numeric(as.Date(column)))
  if (attribute$kind != "time") return(as.numeric(column))
  if (is.character(column)) as.numeric(substr(column, 1, 2)) * 60 + as.numeric(substr(column, 4, 5)) else as.numeric(column) / 60
}

# The label of each value's category; "(missing)" where there is none.
steps_labels <- function(values, attribute) {
  if (attribute$kind %in% c("categorical", "ordinal")) {
    found <- values
  } else {
    code <- attribute$bin[pmax(1, pmin(findInterval(values, attribute$edges), length(attribute$bin)))]
    at <- match(values, attribute$spike)
    code <- ifelse(is.na(at), ifelse(values > attribute$highest, length(attribute$labels), code), attribute$spike_code[at])
    found <- attribute$labels[code]
  }
  ifelse(is.na(found), "(missing)", found)
}

# What a model sees of a set: rows that `where` keeps and that lack no value; categories by all their labels.
steps_frame <- function(set, names, factors, where) {
  kept <- rep(TRUE, nrow(set))
  for (name in names(where)) {
    attribute <- steps_attribute(name)
    wanted <- as.character(where[[name]])
    unknown <- setdiff(wanted, c(attribute$labels, "(missing)"))
    if (length(unknown)) {
      steps_refuse(name, " has no category '", unknown[1], "'; it has ", paste(utils::head(attribute$labels, 8), collapse = ", "))
    }
    kept <- kept & steps_labels(set[[name]], attribute) %in% wanted
  }
  frame <- set[names]
  for (name in names) {
    attribute <- steps_attribute(name)
    kept <- kept & !is.na(frame[[name]])
    if (attribute$kind %in% c("categorical", "ordinal") || name %in% factors) {
      frame[[name]] <- factor(steps_labels(frame[[name]], attribute), levels = attribute$labels)
    }
  }
  if (!any(kept)) steps_refuse("a set has no row that fulfils the condition; ask for a wider one")
  frame[kept, , drop = FALSE]
}

# A symmetric matrix's pseudo-inverse, and which numbers it leaves undetermined: those that some null vector touches.
steps_inverse <- function(gram) {
  scale <- sqrt(ifelse(diag(gram) > 0, diag(gram), 1))
  found <- eigen(gram / outer(scale, scale), symmetric = TRUE)
  null <- found$values < 1e-10 * max(found$values, 1e-300)
  kept <- found$vectors[, !null, drop = FALSE]
  inverse <- kept %*% (t(kept) / found$values[!null]) / outer(scale, scale)
  list(inverse = inverse, unknown = rowSums(abs(found$vectors[, null, drop = FALSE]) > 1e-6) > 0)
}

steps_fit_set <- function(formula, kind, frame, outcome) {
  x <- stats::model.matrix(formula, frame)
  y <- frame[[outcome]]
  y <- if (is.factor(y)) as.numeric(y) - 1 else y
  sound <- qr(x, tol = 1e-9) # columns that others determine are left out: their numbers are not determined, the others' are
  taken <- sort(sound$pivot[seq_len(sound$rank)])
  value <- rep(NA_real_, ncol(x))
  if (kind == "linear") {
    found <- stats::lm.fit(x[, taken, drop = FALSE], y)
    whole <- steps_inverse(crossprod(x))
    freedom <- nrow(x) - found$rank
    variance <- sum(found$residuals^2) / freedom * diag(whole$inverse)
    lost <- whole$unknown
  } else {
    control <- stats::glm.control(epsilon = 1e-13, maxit = 100)
    found <- suppressWarnings(stats::glm.fit(x[, taken, drop = FALSE], y, family = stats::binomial(), control = control))
    weight <- found$fitted.values * (1 - found$fitted.values)
    variance <- diag(steps_inverse(crossprod(x * sqrt(weight)))$inverse)
    # Where every fitted probability is 0 or 1 the likelihood is flat: what only those rows determine has no estimate.
    adrift <- steps_inverse(crossprod(x[weight > 1e-6, , drop = FALSE]))$unknown
    lost <- adrift | steps_inverse(crossprod(x))$unknown
    freedom <- Inf
  }
  value[taken] <- found$coefficients
  list(value = ifelse(lost, NA, value), variance = variance, freedom = freedom, names = colnames(x))
}

# m sets combined: `budget` says whether each has noise of its own, or all are plausible tables behind one measurement.
steps_combine <- function(values, variances, budget) {
  m <- nrow(values)
  value <- colMeans(values)
  within <- colMeans(variances)
  if (m == 1) return(list(value = value, variance = within, freedom = rep(Inf, length(value))))
  between <- apply(values, 2, stats::var)
  factor <- if (budget == "split") 1 / m else 1 + 1 / m
  variance <- within + factor * between
  freedom <- ifelse(variance == 0, Inf, variance^2 / ((factor * between)^2 / (m - 1)))
  list(value = value, variance = variance, freedom = pmax(freedom, m - 1))
}

# names + - : * C( ) 0 1: each name in backticks, and C(name) as the name of a column of categories.
steps_formula <- function(text) {
  tokens <- regmatches(text, gregexpr("[^[:space:]+*:~()-]+|[-+:*~()]", text))[[1]]
  factors <- regmatches(text, gregexpr("\\bC[[:space:]]*\\([^()]*\\)", text))[[1]]
  factors <- trimws(sub("\\)$", "", sub("^C[[:space:]]*\\(", "", factors)))
  tokens <- tokens[!(tokens == "C" & c(tokens[-1], "") == "(") & !tokens %in% c("(", ")")]
  is_name <- !tokens %in% c("+", "-", ":", "*", "~", "0", "1")
  if (sum(tokens == "~") != 1 || tokens[2] != "~" || length(tokens) < 3) {
    steps_refuse("'", text, "' must be: name ~ names with + - : * C( ) 0 1")
  }
  names <- unique(tokens[is_name])
  for (name in names) steps_attribute(name)
  written <- paste(ifelse(is_name, paste0("`", tokens, "`"), tokens), collapse = " ")
  list(formula = stats::as.formula(written), names = names, factors = factors, outcome = tokens[1])
}

# steps_fit("voted ~ age + college", where = list(registered = "yes")): estimates with 95 % intervals.
steps_fit <- function(model, kind = NULL, where = list()) {
  asked <- steps_formula(model)
  outcome <- steps_attribute(asked$outcome)
  named <- outcome$kind %in% c("categorical", "ordinal")
  if (is.null(kind)) kind <- if (named) "logistic" else "linear"
  if (named && (kind != "logistic" || length(outcome$labels) != 2)) {
    steps_refuse("'", asked$outcome, "' cannot be the outcome of a ", kind, " model: it has categories, and a logistic one needs two")
  }
  fits <- lapply(seq_len(steps_release$sets), function(number) {
    frame <- steps_frame(steps_read(number), asked$names, asked$factors, where)
    steps_fit_set(asked$formula, kind, frame, asked$outcome)
  })
  found <- steps_combine(
    do.call(rbind, lapply(fits, function(fit) fit$value)), do.call(rbind, lapply(fits, function(fit) fit$variance)),
    steps_release$budget
  )
  freedom <- pmin(found$freedom, min(vapply(fits, function(fit) fit$freedom, 0)))
  error <- sqrt(found$variance)
  error[is.na(found$value)] <- NA
  reach <- stats::qt(0.975, freedom) * error
  data.frame(
    coefficient = fits[[1]]$names, estimate = found$value, standard_error = error,
    low = found$value - reach, high = found$value + reach, freedom = freedom, row.names = NULL
  )
}

# How far the intervals of a model can be trusted, as the release says it.
steps_honesty <- function(model) {
  model <- gsub("[[:space:]]+", " ", trimws(model))
  for (analysis in steps_release$analyses) if (analysis$name == model) return(analysis$why)
  "This release does not name this model: `steps fit` says whether it measured what the model needs."
}

if (sys.nframe() == 0L && !interactive()) local({
  words <- commandArgs(TRUE)
  options(width = 120)
  kind <- csv <- NULL
  take <- function(option) {
    at <- match(option, words)
    if (is.na(at)) return(NULL)
    value <- words[at + 1]
    words <<- words[-c(at, at + 1)]
    value
  }
  kind <- take("--kind")
  csv <- take("--csv")
  if (!length(words)) steps_refuse("Rscript analysis.R \"voted ~ age + college\" [name=category ...] [--kind linear] [--csv FILE]")
  conditions <- strsplit(words[-1], "=", fixed = TRUE)
  where <- lapply(conditions, function(each) paste(each[-1], collapse = "="))
  names(where) <- vapply(conditions, function(each) each[1], "")
  found <- steps_fit(words[1], kind, where)
  print(found, digits = 6, row.names = FALSE)
  cat("\nCombined by ", steps_release$rule, ".\n", if (!length(where)) paste0(steps_honesty(words[1]), "\n"), sep = "")
  if (!is.null(csv)) utils::write.csv(format(found, digits = 12), csv, row.names = FALSE)
})
