"""All forms, in the order of the page."""

import classification_forms
import count_forms
import output_forms
import portfolio_forms
import regression_forms
import robust_forms

FORMS = [
    form
    for part in (
        regression_forms,
        robust_forms,
        classification_forms,
        count_forms,
        output_forms,
        portfolio_forms,
    )
    for form in part.FORMS
]
